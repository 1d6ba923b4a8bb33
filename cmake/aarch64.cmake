# Toolchain: Debian's cross compiler, with which scripts/test.sh compiles the library for AArch64. Nothing is
# linked, so of the libraries that it uses the headers of this machine will do.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_C_FLAGS_INIT "-idirafter /usr/include")
