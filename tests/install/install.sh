#!/usr/bin/env bash
# Installs into an empty prefix, builds the examples against what is there (by pkg-config and by
# find_package, shared and static), runs them, and takes everything away again.
source tests/support/cli_test.bash
prefix=$work/prefix
# the manifest belongs to whoever installed from this build before us
manifest=$TW_BUILD/install_manifest.txt
[ -e "$manifest" ] && mv "$manifest" "$work/manifest_before"
restore() {
    [ -e "$work/manifest_before" ] && mv "$work/manifest_before" "$manifest"
    rm -rf "$work"
}
trap restore EXIT

expect 0 "" cmake --install "$TW_BUILD" --prefix "$prefix"
libraries=$(dirname "$(find "$prefix" -name libtilewright.a)")
for file in bin/tilewright include/tilewright.h include/tilewright_ir.h include/dlpack.h \
    share/tilewright/kernels/attention_fwd.tw share/tilewright/seeds.txt share/man/man1/tilewright.1 \
    share/tilewright/kernels/variants/attention_padded.tw \
    share/bash-completion/completions/tilewright share/zsh/site-functions/_tilewright \
    share/fish/vendor_completions.d/tilewright.fish share/tilewright/devices/rtx4080.profile \
    share/doc/tilewright/{LICENSE,README.md} share/doc/tilewright/docs/{LANGUAGE.md,attention_cpu.svg}; do
    [ -s "$prefix/$file" ] || complain "$file is not installed"
done
[ -s "$libraries/libtilewright.a" ] || complain "no archive is installed"
soname=$(objdump -p "$libraries/libtilewright.so" | sed -n 's/.*SONAME *//p')
[ -e "$libraries/$soname" ] && [ "$soname" != libtilewright.so ] || complain "SONAME is '$soname'"
expect 0 "PASS" "$prefix/bin/tilewright" run "$prefix/share/tilewright/kernels/vector_add.tw" \
    'a=rand:f32[99]' 'b=rand:f32[99]' --check --tune=never

# run_example PROGRAM: where kernels/ is
run_example() {
    expect 0 "" env -C "$prefix/share/tilewright" "$1"
    [ -s "$work/out" ] || complain "$1 prints nothing"
}
# compiler FILE: for its language
compiler() {
    case $1 in
        *.cc) echo c++ -std=c++11 ;;
        *) echo cc -std=c11 ;;
    esac
}

export PKG_CONFIG_PATH=$libraries/pkgconfig
expect 0 "$("$tw" --version | cut -d' ' -f2)" pkg-config --modversion tilewright
[ "$(pkg-config --variable=kerneldir tilewright)" -ef "$prefix/share/tilewright/kernels" ] ||
    complain "kerneldir is elsewhere"
for file in examples/*.c examples/*.cc; do
    name=$(basename "$file")
    # shellcheck disable=SC2046 # flags are words
    expect 0 "" $(compiler "$file") -Wall -Werror $(pkg-config --cflags tilewright) "$file" \
        -o "$work/$name.shared" $(pkg-config --libs tilewright) -lm -Wl,-rpath,"$libraries"
    run_example "$work/$name.shared"
    expect 0 "" $(compiler "$file") $(pkg-config --cflags tilewright) "$file" \
        -o "$work/$name.static" "$libraries/libtilewright.a" -Wl,--as-needed \
        $(pkg-config --static --libs tilewright) -lm
    run_example "$work/$name.static"
    ldd "$work/$name.static" | grep -q libtilewright && complain "$name.static needs the shared library"
done

expect 0 "" cc -std=gnu11 -Wall -Werror -I"$prefix/include" tests/install/reload.c -o "$work/reload" -ldl
# What the C library keeps is little. A static LLVM and C++ runtime leave 122 KiB of tables behind.
stays=4096
grep -q '^TW_PORTABLE:BOOL=ON' "$TW_BUILD/CMakeCache.txt" && stays=150000
expect 0 "" "$work/reload" "$libraries/libtilewright.so" \
    "$prefix/share/tilewright/kernels/vector_add.tw" $stays

cp -r "$prefix/share/doc/tilewright/examples" "$work/examples" # those that were installed
expect 0 "" cmake -G Ninja -S "$work/examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix"
expect 0 "" cmake --build "$work/build"
for file in examples/*.c examples/*.cc; do
    name=$(basename "${file%.*}")
    run_example "$work/build/$name"
    run_example "$work/build/${name}_static"
done
printf 'cmake_minimum_required(VERSION 3.18)\nproject(p C)\nfind_package(tilewright 0.2 REQUIRED)\n' \
    >"$work/CMakeLists.txt"
expect 1 "0.2" cmake -G Ninja -S "$work" -B "$work/other" -DCMAKE_PREFIX_PATH="$prefix"

touch "$prefix/share/tilewright/kernels/mine.tw" # not ours: stays
expect 0 "" cmake --build "$TW_BUILD" --target uninstall
[ -e "$prefix/share/tilewright/kernels/mine.tw" ] || complain "uninstall removed another's file"
rm "$prefix/share/tilewright/kernels/mine.tw"
rmdir "$prefix/share/tilewright/kernels" "$prefix/share/tilewright"
find "$prefix" -not -type d -o -path '*tilewright*' -not -path "$prefix" >"$work/out"
[ ! -s "$work/out" ] || complain "left behind by uninstall"
prefix="$work/préfixe [1] of 2" # bytes that CMake takes for its own elsewhere
expect 0 "" cmake --install "$TW_BUILD" --prefix "$prefix"
[ -s "$prefix/bin/tilewright" ] || complain "nothing is installed in $prefix"
expect 0 "" cmake --build "$TW_BUILD" --target uninstall
find "$prefix" -not -type d -o -path "$prefix/*tilewright*" >"$work/out"
[ ! -s "$work/out" ] || complain "left behind by the second uninstall"
expect 1 "Nothing was installed" cmake --build "$TW_BUILD" --target uninstall
finish
