# Writes OUT: a C file with a hash over everything that shapes generated code. It is part of every
# artifact's key, so that code made by another version of the compiler is never loaded. Where the
# files lie does not count.
#   cmake -DROOT=... -DOUT=... -P code_hash.cmake
file(GLOB_RECURSE files ${ROOT}/compiler/*.c ${ROOT}/compiler/*.h ${ROOT}/compiler/*.def)
set(hashes "")
foreach(file ${files})
    file(SHA256 ${file} hash)
    list(APPEND hashes ${hash})
endforeach()
list(SORT hashes)
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 32 hash)
file(WRITE ${OUT}
    "extern const char runtime_code_hash[];\nconst char runtime_code_hash[] = \"${hash}\";\n")
