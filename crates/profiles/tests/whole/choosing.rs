//! The choice of a profile.

use pinion_profiles::ProfileRequest;

use crate::world::{World, profile};

/// Registries `one` (profiles a, default, both) and `two` (profiles b, both), in that order.
fn world() -> World {
    let world = World::new();
    world.write(
        "one.yaml",
        "slug: one\nprofiles: {a: , default: , both: }\n",
    );
    world.write("two.yaml", "slug: two\nprofiles: {b: , both: }\n");
    world
}

fn sources(world: &World) -> String {
    let path = |name: &str| world.path(name).display().to_string();
    format!("{},yaml:{}", path("one.yaml"), path("two.yaml"))
}

fn chosen(world: &World, asked: &ProfileRequest) -> String {
    match world.resolve(asked).unwrap().profile {
        Some(profile) => format!("{}/{}", profile.registry, profile.slug),
        None => "none".to_owned(),
    }
}

#[test]
fn the_table_of_choices() {
    let nothing = ProfileRequest::default();
    let mut world = world();
    assert_eq!(chosen(&world, &nothing), "none");
    let told = world.error_for(&profile("a"));
    assert!(
        told.starts_with("no_profiles profile \"a\" is asked for"),
        "{told}"
    );

    // The user's default file.
    world.write(
        "home/.config/pinocchio/profiles.yaml",
        "slug: own\nprofiles: {o: }\n",
    );
    assert_eq!(chosen(&world, &nothing), "own/o");

    // Sources in documents override it, those of the environment override documents, and options
    // override all.
    let named = format!("profile: {{registries: [{}]}}\n", sources(&world));
    world.write("home/.pinocchio/config.yaml", &named);
    assert_eq!(chosen(&world, &nothing), "two/b");
    assert_eq!(chosen(&world, &profile("a")), "one/a");
    assert_eq!(chosen(&world, &profile("both")), "two/both");
    let told = world.error_for(&profile("o"));
    assert_eq!(
        told,
        "profile_not_found the chosen profile: there is no profile \"o\"; the profiles are: a, b, both, default"
    );
    let one = world.path("one.yaml").display().to_string();
    world.variable("PINOCCHIO_PROFILE_REGISTRIES", &one);
    assert_eq!(chosen(&world, &nothing), "one/default");
    let asked = ProfileRequest {
        registries: Some(vec![world.path("two.yaml").display().to_string()]),
        ..ProfileRequest::default()
    };
    assert_eq!(chosen(&world, &asked), "two/b");

    // Inline profiles override imported ones.
    world.write(
        "home/.config/pinocchio/config.yaml",
        "profiles: {both: , z: }\n",
    );
    assert_eq!(chosen(&world, &nothing), "config-inline/both");
    assert_eq!(chosen(&world, &profile("both")), "config-inline/both");
    assert_eq!(chosen(&world, &profile("a")), "one/a");

    // The choice in documents, in the environment, and by an option.
    world.write(
        "home/.config/pinocchio/config.yaml",
        "profile: {active: z}\nprofiles: {both: , z: }\n",
    );
    assert_eq!(chosen(&world, &nothing), "config-inline/z");
    world.variable("PINOCCHIO_PROFILE", "A");
    assert_eq!(chosen(&world, &nothing), "one/a");
    assert_eq!(chosen(&world, &profile("default")), "one/default");
    assert!(
        world
            .error_for(&profile("a b"))
            .starts_with("invalid_slug --profile")
    );
    world.variable("PINOCCHIO_PROFILE", "-");
    assert!(
        world
            .error_text()
            .starts_with("invalid_slug PINOCCHIO_PROFILE")
    );
}

#[test]
fn an_empty_list_of_sources_means_none() {
    let world = world();
    world.write(
        "home/.config/pinocchio/profiles.yaml",
        "slug: own\nprofiles: {o: }\n",
    );
    world.write("home/.pinocchio/config.yaml", "profile: {registries: []}\n");
    assert_eq!(chosen(&world, &ProfileRequest::default()), "none");
}

#[test]
fn a_registry_without_profiles_chooses_nothing() {
    let world = world();
    world.write("home/.config/pinocchio/profiles.yaml", "slug: own\n");
    assert_eq!(chosen(&world, &ProfileRequest::default()), "none");
}
