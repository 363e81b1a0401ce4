#include "tests/fs/store/images.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/store/rocks.h"
#include "tests/lib/tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct image image[MOST_IMAGES];
int images;

void images_take(const char *folder)
{
    CLEANUP_CLOSEDIR DIR *d = opendir(folder);
    struct dirent *e;
    struct stat st;
    while (d && (e = readdir(d))) {
        struct image *i = &image[images];
        if (fstatat(dirfd(d), e->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
            continue;
        snprintf(i->path, sizeof i->path, "%.200s/%.200s", folder, e->d_name);
        i->bytes = (struct str)STR_INIT;
        if (file_read(AT_FDCWD, i->path, 64 << 20, &i->bytes) || ++images == MOST_IMAGES)
            bail_out("read %s", i->path);
    }
}

void images_put_back(const char *directory)
{
    char db[512];
    dir_remove_tree(AT_FDCWD, directory);
    snprintf(db, sizeof db, "%s/" ROCKS_DATABASE, directory);
    if (dir_make(db, 0700))
        bail_out("make %s", db);
    for (int i = 0; i < images; i++)
        write_file(image[i].path, image[i].bytes.data ? image[i].bytes.data : "", image[i].bytes.length);
}

void images_end(void)
{
    while (images)
        str_fini(&image[--images].bytes);
}

void write_file(const char *path, const void *bytes, size_t n)
{
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || file_write_all(fd, bytes, n))
        bail_out("write %s", path);
}

/* Not by pread, in whose place a test may stand. */
void flip_file(const char *path, size_t at, char mask)
{
    CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    char byte;
    if (fd < 0 || syscall(SYS_pread64, fd, &byte, 1, at) != 1)
        bail_out("read %s", path);
    byte ^= mask;
    if (pwrite(fd, &byte, 1, (off_t)at) != 1)
        bail_out("damage %s", path);
}
