/* Read a rank's samples of an epoch in their order.
 *
 *   cc -O2 -o read-plan read-plan.c
 *   ./read-plan MOUNTPOINT epoch=E,ranks=R,batch=B,rank=r[,KEY=VALUE...]
 *
 * Maps two files: the plan, an array of little-endian numbers, and the list of samples, one path per line. Prints
 * number, bytes and path of each sample. */
#define _GNU_SOURCE
#include <endian.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct bytes {
    const char *data;
    size_t length;
};

static struct bytes map(const char *mount, const char *folder, const char *name)
{
    char path[4096];
    struct stat attributes;
    snprintf(path, sizeof path, "%s/.dealfs/%s%s", mount, folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &attributes) != 0)
        err(1, "open %s (the reason is in %s/.dealfs/errors)", path, mount);
    struct bytes b = {"", (size_t)attributes.st_size};
    if (b.length > 0)
        b.data = mmap(NULL, b.length, PROT_READ, MAP_PRIVATE, fd, 0);
    if (b.data == MAP_FAILED)
        err(1, "map %s", path);
    close(fd);
    return b;
}

/* Where each line of the list begins, and where the last one ends. */
static const char **index_lines(struct bytes list, uint32_t *count)
{
    const char *at = list.data, *end = list.data + list.length;
    uint32_t n = 0;
    for (const char *p = at; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        n++;
    const char **line = malloc((n + 1ul) * sizeof *line);
    if (!line)
        err(1, "out of memory");
    for (uint32_t i = 0; i < n; i++) {
        line[i] = at;
        at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
    }
    line[n] = at;
    *count = n;
    return line;
}

/* In a line, newline, carriage return and backslash are written as \n, \r and \\. */
static void unescape(const char *line, const char *end, char *path)
{
    while (line < end) {
        char c = *line++;
        if (c == '\\' && line < end) {
            c = *line++;
            c = c == 'n' ? '\n' : c == 'r' ? '\r' : c;
        }
        *path++ = c;
    }
    *path = '\0';
}

static uint64_t read_sample(int mount, const char *path)
{
    static char buffer[1 << 17];
    uint64_t bytes = 0;
    ssize_t n;
    int fd = openat(mount, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        err(1, "open %s", path);
    while ((n = read(fd, buffer, sizeof buffer)) > 0)
        bytes += (uint64_t)n;
    if (n < 0)
        err(1, "read %s", path);
    close(fd);
    return bytes;
}

int main(int argc, char **argv)
{
    char keys[4096], path[3 * 4096];
    uint32_t samples;
    if (argc != 3)
        errx(2, "usage: read-plan MOUNTPOINT epoch=E,ranks=R,batch=B,rank=r[,KEY=VALUE...]");
    snprintf(keys, sizeof keys, "%s,reply=u32", argv[2]);
    struct bytes plan = map(argv[1], "plan/", keys), list = map(argv[1], "", "samples");
    const char **line = index_lines(list, &samples);
    const uint32_t *number = (const void *)plan.data;
    int mount = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mount < 0)
        err(1, "open %s", argv[1]);
    for (size_t i = 0; i < plan.length / sizeof *number; i++) {
        uint32_t sample = le32toh(number[i]);
        if (sample >= samples)
            errx(1, "sample %" PRIu32 " is not in the list `all`", sample);
        unescape(line[sample], line[sample + 1] - 1, path);
        printf("%" PRIu32 "\t%" PRIu64 "\t%s\n", sample, read_sample(mount, path), path);
    }
    free(line);
    return fflush(stdout) != 0;
}
