/* See scanning.h. */
#include "tests/fs/catalog/scanning.h"

#include "fs/base/log.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

char scanning_root[256], scanning_path[256];

void scanning_begin(const char *name)
{
    snprintf(scanning_root, sizeof scanning_root, "%s", test_path("%s", name));
    snprintf(scanning_path, sizeof scanning_path, "%s", test_path("%s.catalog", name));
    source_add(scanning_root, "", 0);
    diag("%s", name);
}

struct digest scanning_digest(const struct catalog *c)
{
    return *catalog_digest(c);
}

bool same_digest(struct digest a, struct digest b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

struct catalog *scanning_run(enum rescan how, struct scan_progress *result)
{
    struct catalog *c;
    struct scan_options options = {.rescan = how};
    int error = source_scan(scanning_root, scanning_path, &options, &c, result);
    if (error)
        bail_out("scan %s: %s", scanning_root, strerror(-error));
    return c;
}

int scanning_log(void)
{
    int fd = memfd_create("log", MFD_CLOEXEC);
    if (fd < 0 || fcntl(fd, F_SETFL, O_APPEND) < 0) /* threads log at once, and a memfd does not lock its place */
        bail_out("memfd_create: %s", strerror(errno));
    log_open("test", fd, false);
    return fd;
}

void scanning_log_end(int fd)
{
    log_open("test", STDERR_FILENO, false);
    close(fd);
}

bool scanning_log_has(int fd, const char *text)
{
    CLEANUP_STR struct str log = STR_INIT;
    lseek(fd, 0, SEEK_SET);
    return file_read_fd(fd, 1 << 20, &log) == 0 && log.data && strstr(log.data, text);
}

void scanning_add_classes(void)
{
    char name[64];
    for (int d = 0; d < 10; d++)
        for (int f = 0; f < 5; f++) {
            snprintf(name, sizeof name, "c%d/sub/%d", d, f);
            source_add(scanning_root, name, f);
            snprintf(name, sizeof name, "c%d/%d", d, f);
            source_add(scanning_root, name, f);
        }
}
