#!/usr/bin/env bash
# Installs the Debian packages that the build needs and that are missing: with apt-get when we are
# root or sudo asks for nothing, else it prints the command and stops. Does nothing, quickly, when
# all are there. Packages may be named to have them too: scripts/setup.sh llvm-19-dev
set -u

packages=(llvm-22-dev check libsqlite3-dev libxxhash-dev libzstd-dev zlib1g-dev
    cmake ninja-build gcc g++ libc6-dev pkg-config python3 python3-numpy "$@")

if ! command -v dpkg-query >/dev/null; then
    echo "This is not a Debian system: nothing was installed. The build needs what these packages"
    echo "hold, and says so where one is missing: ${packages[*]}"
    exit 0
fi

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=()
for package in "${packages[@]}"; do
    is_installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "Everything is installed."
    exit 0
fi

install="apt-get install -y --no-install-recommends ${missing[*]}"
tell() { # what to type
    local sudo=
    [ "$(id -u)" -eq 0 ] || ! command -v sudo >/dev/null || sudo="sudo "
    echo "    ${sudo}apt-get update && ${sudo}$install"
}
if [ "$(id -u)" -eq 0 ]; then
    as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo)
else
    if command -v sudo >/dev/null; then
        echo "Packages are missing. Run this, then start again:"
    else
        echo "Packages are missing, and there is no sudo. Run this as root, then start again:"
    fi
    tell
    exit 1
fi

echo "Installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update || echo "(apt-get update failed; trying with the lists there are)"
if ! "${as_root[@]}" $install; then
    echo "apt-get could not install the packages. llvm-22-dev comes from Debian 12's security"
    echo "archive (bookworm-security), which must be among the sources. The command was:"
    tell
    exit 1
fi
