#ifndef TW_STORE_STOREFILE_H
#define TW_STORE_STOREFILE_H
/* Where the store's file is, and whether it may be trusted and written: the rules of store.h, read
 * from the file system alone. It never opens a file that exists: closing one would drop the locks
 * that SQLite holds on it in this process. */
#include <limits.h>
#include <stdbool.h>

enum file_verdict {
    FILE_READY,
    FILE_READ_ONLY,
    FILE_REFUSED,
    FILE_LATER /* refused for a reason that may pass: no space */
};
typedef struct store_file {
    char path[PATH_MAX]; /* absolute, its directory without symbolic links */
    bool network;        /* a file system of several hosts: no write-ahead log there */
    char why[320];       /* what is wrong and what to do; set unless FILE_READY */
} store_file;

/* Creates directory and file where they are missing. */
enum file_verdict store_file_prepare(const char *path, store_file *f);
/* Are the files that SQLite keeps beside it (-wal, -shm, -journal) absent or ours? Sets why. */
bool store_file_sides_ours(store_file *f);
/* statfs type numbers of NFS, SMB and their like. */
bool store_file_is_network(long type);

#endif
