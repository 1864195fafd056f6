#!/bin/sh
# Installs pinion for the current user: downloads the archive for this machine, compares its checksum, and puts the
# program into ~/.local/bin. Nothing is changed before the checksum is right.
#
#   PINION_INSTALL_URL  the directory of a release, with SHA256SUMS and the archives
#   PINION_INSTALL_DIR  where the program goes: ~/.local/bin
set -eu

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

download() {
    if command -v curl >/dev/null 2>&1; then
        curl -fsSL --retry 2 -o "$2" "$1" || fail "$1 cannot be downloaded"
    elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$2" "$1" || fail "$1 cannot be downloaded"
    else
        fail "neither curl nor wget is installed; install one of them"
    fi
}

# Everything is in a function that the last line calls, so that a script that was cut off does nothing.
main() {
    url=${PINION_INSTALL_URL:-https://github.com/pinion/pinion/releases/latest/download}
    directory=${PINION_INSTALL_DIR:-$HOME/.local/bin}
    [ "$(uname -s)" = Linux ] || fail "pinion runs on Linux, not on $(uname -s)"
    machine=$(uname -m)
    case $machine in
        x86_64 | aarch64) ;;
        *) fail "there is no pinion for $machine; build it with cargo" ;;
    esac
    if ldd --version 2>&1 | grep -qi musl; then
        fail "there is no pinion for systems with musl yet; build it with cargo"
    fi
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT INT TERM
    download "$url/SHA256SUMS" "$work/SHA256SUMS"
    archive=$(sed -n "s/^[0-9a-f]\{64\}  \(pinion-[0-9][^ /]*-$machine-unknown-linux-gnu\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS")
    [ -n "$archive" ] || fail "$url has no archive for $machine"
    download "$url/$archive" "$work/$archive"
    (cd "$work" && grep "  $archive\$" SHA256SUMS | sha256sum -c - >/dev/null 2>&1) ||
        fail "the checksum of $archive is wrong; nothing was installed"
    tar -xzf "$work/$archive" -C "$work"
    mkdir -p "$directory"
    # The new file replaces the old one in one step; running programs continue with the old one.
    install -m 0755 "$work/${archive%.tar.gz}/pinion" "$directory/.pinion.new"
    mv -f "$directory/.pinion.new" "$directory/pinion"
    echo "pinion $("$directory/pinion" --version | head -n 1) is installed in $directory"
    case ":$PATH:" in
        *":$directory:"*) ;;
        *) echo "Add it to your PATH: export PATH=\"$directory:\$PATH\"" ;;
    esac
}

main "$@"
