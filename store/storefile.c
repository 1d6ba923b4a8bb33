#include "store/storefile.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

__attribute__((format(printf, 3, 4))) static enum file_verdict
say(store_file *f, enum file_verdict verdict, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f->why, sizeof f->why, fmt, ap);
    va_end(ap);
    return verdict;
}

static enum file_verdict refuse_errno(store_file *f, const char *what)
{
    int e = errno;
    bool space = e == ENOSPC || e == EDQUOT;

    return say(f, space ? FILE_LATER : FILE_REFUSED, "%s: %s; %s", what, strerror(e),
               space ? "free some space" : "give a path that you can write");
}

/* A group with the user's own number is the user's private one. */
static bool others_write(const struct stat *s)
{
    if (s->st_mode & S_IWOTH)
        return true;
    return (s->st_mode & S_IWGRP) && !(S_ISDIR(s->st_mode) && s->st_gid == s->st_uid);
}

static bool is_ours(const struct stat *s)
{
    return s->st_uid == geteuid() || s->st_uid == 0;
}

/* Makes every missing directory of path, for its user alone. */
static bool make_directories(char *path)
{
    for (char *at = path + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char kept = *at;
        *at = '\0';
        int failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        int e = errno;
        struct stat s;
        if (failed && stat(path, &s) != 0) {
            errno = e;
            return false;
        }
        *at = kept;
        if (kept == '\0')
            return true;
    }
}

static enum file_verdict check_directory(store_file *f, const char *dir)
{
    struct stat s;

    if (stat(dir, &s) != 0)
        return refuse_errno(f, "its directory cannot be read");
    if (!S_ISDIR(s.st_mode))
        return say(f, FILE_REFUSED, "%s is not a directory; give another path", dir);
    if (!is_ours(&s))
        return say(f, FILE_REFUSED, "its directory belongs to user %u; use a directory of your own",
                   (unsigned)s.st_uid);
    if (others_write(&s) && !(s.st_mode & S_ISVTX))
        return say(f, FILE_REFUSED, "others can write to its directory; run: chmod go-w %s", dir);
    return FILE_READY;
}

/* path -> directory without links + name */
static enum file_verdict resolve(const char *path, store_file *f)
{
    char dir[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = slash ? (size_t)(slash - path) : 0;

    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return say(f, FILE_REFUSED, "the path names a directory; add a file name");
    if (strlen(path) >= sizeof dir - 16)
        return say(f, FILE_REFUSED, "the path is too long");
    snprintf(dir, sizeof dir, "%.*s", n ? (int)n : 1, n ? path : slash ? "/" : ".");
    if (!make_directories(dir))
        return refuse_errno(f, "its directory cannot be made");
    if (!realpath(dir, real))
        return refuse_errno(f, "its directory cannot be read");
    if (strlen(real) + strlen(name) + 16 > sizeof f->path)
        return say(f, FILE_REFUSED, "the path is too long");
    strcpy(f->path, real);
    strcat(f->path, !strcmp(real, "/") ? "" : "/");
    strcat(f->path, name);
    return check_directory(f, real);
}

static bool can_write(const char *path)
{
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static bool directory_writable(const store_file *f)
{
    char dir[PATH_MAX];

    strcpy(dir, f->path);
    char *slash = strrchr(dir, '/');
    slash[slash == dir] = '\0';
    return can_write(dir);
}

/* The only open: of a file that did not exist a moment ago, so that nothing holds a lock on it. */
static enum file_verdict create(store_file *f)
{
    int fd = open(f->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno == EEXIST ? FILE_READY : refuse_errno(f, "it cannot be created");
    int failed = fchmod(fd, 0600); /* whatever the umask took */
    int e = errno;
    close(fd);
    errno = e;
    return failed ? refuse_errno(f, "its mode cannot be set") : FILE_READY;
}

/* SQLite takes a file of one byte for an empty one, and would write over it. */
static bool is_too_short(const struct stat *s)
{
    enum { SMALLEST_PAGE = 512 };

    return s->st_size > 0 && s->st_size < SMALLEST_PAGE;
}

static enum file_verdict check_file(store_file *f)
{
    struct stat s;

    if (lstat(f->path, &s) != 0)
        return refuse_errno(f, "it cannot be read");
    if (S_ISLNK(s.st_mode))
        return say(f, FILE_REFUSED, "it is a symbolic link; give the path of the file itself");
    if (!S_ISREG(s.st_mode))
        return say(f, FILE_REFUSED, "it is not a regular file; give another path");
    if (!is_ours(&s))
        return say(f, FILE_REFUSED, "it belongs to user %u; use a file of your own",
                   (unsigned)s.st_uid);
    if (others_write(&s))
        return say(f, FILE_REFUSED, "others can write to it; run: chmod 600 %s", f->path);
    if (is_too_short(&s))
        return say(f, FILE_REFUSED,
                   "it is not a store: no database is as short as %d bytes; it was left as it is: "
                   "move it away or give another path",
                   (int)s.st_size);
    if (!store_file_sides_ours(f))
        return FILE_REFUSED;
    if (!can_write(f->path))
        return say(f, FILE_READ_ONLY, "the file is read-only; give a path that you can write");
    if (!directory_writable(f))
        return say(f, FILE_READ_ONLY, "its directory is read-only; give a path that you can write");
    return FILE_READY;
}

enum file_verdict store_file_prepare(const char *path, store_file *f)
{
    struct stat s;
    struct statfs fs;
    enum file_verdict v;

    memset(f, 0, sizeof *f);
    snprintf(f->path, sizeof f->path, "%s", path);
    v = resolve(path, f);
    if (v == FILE_READY && lstat(f->path, &s) != 0)
        v = create(f);
    if (v == FILE_READY)
        v = check_file(f);
    if (v == FILE_READY || v == FILE_READ_ONLY)
        f->network = statfs(f->path, &fs) == 0 && store_file_is_network((long)fs.f_type);
    return v;
}

bool store_file_sides_ours(store_file *f)
{
    static const char *const side[] = {"-wal", "-shm", "-journal"};

    for (size_t i = 0; i < sizeof side / sizeof side[0]; i++) {
        char path[PATH_MAX + 16];
        struct stat s;
        snprintf(path, sizeof path, "%s%s", f->path, side[i]);
        if (lstat(path, &s) == 0 && (!S_ISREG(s.st_mode) || !is_ours(&s) || others_write(&s))) {
            say(f, FILE_REFUSED,
                "%s beside it is not this user's own; remove it or give another path", side[i]);
            return false;
        }
    }
    return true;
}

bool store_file_is_network(long type)
{
    /* linux/magic.h, and the numbers statfs(2) lists: NFS, SMB, CIFS, SMB2, AFS, Coda, NCP, 9P,
     * Ceph, GFS2, Lustre, OCFS2. FUSE may be anything: taken for one. */
    static const unsigned long network[] = {
        0x6969,     0x517b,     0xff534d42, 0xfe534d42, 0x5346414f, 0x73757245, 0x564c,
        0x01021997, 0x00c36400, 0x01161970, 0x0bd00bd0, 0x7461636f, 0x65735546};

    for (size_t i = 0; i < sizeof network / sizeof network[0]; i++)
        if (((unsigned long)type & 0xffffffff) == network[i])
            return true;
    return false;
}
