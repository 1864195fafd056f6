//! Facts about the machine, for `node:os`.

use std::thread::available_parallelism;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use rquickjs::prelude::Func;
use rquickjs::{Ctx, Object};

use super::syscall_error;

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>) -> rquickjs::Result<()> {
    let group = super::group(ctx, ops, "os")?;
    group.set("errorName", Func::from(syscall_error::code))?;
    group.set(
        "parallelism",
        Func::from(|| available_parallelism().map_or(1, |count| count.get() as u32)),
    )?;
    group.set("interfaces", Func::from(interfaces))
}

/// Returns `[name, address, netmask, family, internal]` for each address, as JSON.
fn interfaces() -> String {
    let mut found = Vec::new();
    for interface in getifaddrs().into_iter().flatten() {
        let (Some(address), Some(mask)) = (interface.address, interface.netmask) else {
            continue;
        };
        let (shown, mask, family) = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
            (Some(address), _) => {
                let mask = mask.as_sockaddr_in().map(|mask| mask.ip().to_string());
                (address.ip().to_string(), mask, "IPv4")
            }
            (_, Some(address)) => {
                let mask = mask.as_sockaddr_in6().map(|mask| mask.ip().to_string());
                (address.ip().to_string(), mask, "IPv6")
            }
            _ => continue,
        };
        let internal = interface.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        found.push((
            interface.interface_name,
            shown,
            mask.unwrap_or_default(),
            family,
            internal,
        ));
    }
    serde_json::json!(found).to_string()
}
