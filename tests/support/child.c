#include "tests/support/child.h"
#include <check.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Check's file is the regular file without a name. */
static void leave_messages(void)
{
    int null = open("/dev/null", O_RDWR);
    struct stat s;

    for (int fd = STDERR_FILENO + 1; fd < 256; fd++)
        if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_nlink == 0)
            dup2(null, fd);
    close(null);
}

pid_t child_start(int (*fn)(void *arg), void *arg)
{
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        leave_messages();
        _exit(fn(arg));
    }
    return pid;
}

int child_end(pid_t pid)
{
    int status = 0;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int child_run(int (*fn)(void *arg), void *arg)
{
    return child_end(child_start(fn, arg));
}
