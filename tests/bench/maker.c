/* Makes the trees of `make bench`, fast: maker DIRECTORY FILES SIZE FILES_A_DIRECTORY
 *
 * Files dNNNN/fNNNNNNN of SIZE pseudo-random bytes, so that nothing compresses and no two files are alike. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 20 };

static void fill(uint64_t *words, size_t n, uint64_t *seed)
{
    uint64_t x = *seed;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        words[i] = x;
    }
    *seed = x;
}

static int make_file(int directory, unsigned long number, size_t size, uint64_t *words)
{
    char name[32];
    uint64_t seed = number * 0x9e3779b97f4a7c15u + 1;
    snprintf(name, sizeof name, "f%07lu", number);
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    for (size_t done = 0; done < size;) {
        size_t n = size - done < BLOCK ? size - done : BLOCK;
        fill(words, (n + 7) / 8, &seed);
        if (write(fd, words, n) != (ssize_t)n)
            return -1;
        done += n;
    }
    return close(fd);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: maker DIRECTORY FILES SIZE FILES_A_DIRECTORY\n");
        return 2;
    }
    unsigned long files = strtoul(argv[2], NULL, 10), each = strtoul(argv[4], NULL, 10);
    size_t size = strtoul(argv[3], NULL, 10);
    uint64_t *words = malloc(BLOCK);
    int root = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC), directory = -1;
    if (!words || root < 0 || each == 0) {
        perror(argv[1]);
        return 1;
    }
    for (unsigned long i = 0; i < files; i++) {
        if (i % each == 0) {
            char name[32];
            snprintf(name, sizeof name, "d%04lu", i / each);
            if (directory >= 0)
                close(directory);
            if (mkdirat(root, name, 0755) != 0 && errno != EEXIST)
                break;
            directory = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
        if (make_file(directory, i, size, words) != 0) {
            perror("maker");
            return 1;
        }
    }
    close(directory);
    close(root);
    free(words);
    return 0;
}
