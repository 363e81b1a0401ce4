/* A digest of a list by the paths, ranges and sizes of its samples: it stays the same in another catalog, as long as
 * these stay. */
#include "fs/base/cleanup.h"
#include "fs/catalog/samples-inside.h"

/* Mostly, neighbours in a list are in one directory, and those in a list of records in one file. */
struct hashing {
    const struct catalog *catalog;
    uint64_t directory, prefix; /* the hash of its path; directory 0: none yet */
    uint32_t file;
    uint64_t hash; /* of that file's path and size */
    char path[CATALOG_PATH_MAX];
};

static uint64_t hash_file(struct hashing *h, uint32_t file)
{
    const struct catalog *c = h->catalog;
    uint64_t ino = catalog_file_ino(c, file), parent = catalog_parent(c, ino);
    size_t length;
    if (h->directory && h->file == file)
        return h->hash;
    if (h->directory != parent) {
        long n = catalog_path(c, parent, h->path, sizeof h->path);
        h->prefix = hash64(h->path, n < 0 ? 0 : (size_t)n, 0);
    }
    const char *name = catalog_name(c, ino, &length);
    const uint64_t parts[] = {hash64(name, length, h->prefix), catalog_file(c, file).size};
    h->directory = parent;
    h->file = file;
    h->hash = hash64(parts, sizeof parts, 0);
    return h->hash;
}

static struct digest hash_all(const struct samples *s, struct hashing *h)
{
    enum { BLOCK = 1024 };
    struct digest digest = {{0}};
    uint64_t block[BLOCK][3];
    for (uint64_t i = 0, n; i < s->content.count; i += n) {
        n = s->content.count - i < BLOCK ? s->content.count - i : BLOCK;
        for (uint64_t k = 0; k < n; k++) {
            uint32_t sample = (uint32_t)(i + k);
            block[k][0] = hash_file(h, samples_file(s, sample));
            block[k][1] = samples_offset(s, sample);
            block[k][2] = samples_length(s, sample);
        }
        const struct digest pair[] = {digest, hash128(block, n * sizeof block[0], 0)};
        digest = hash128(pair, sizeof pair, 0);
    }
    return digest;
}

int samples_path_digest(struct samples *s, struct digest *digest)
{
    pthread_mutex_lock(&s->text.lock);
    bool known = s->by_path.known;
    *digest = s->by_path.digest;
    pthread_mutex_unlock(&s->text.lock);
    if (known)
        return 0;
    CLEANUP_FREE struct hashing *h = calloc(1, sizeof *h);
    if (!h)
        return -ENOMEM;
    h->catalog = s->catalog;
    *digest = hash_all(s, h);
    LOCK_SCOPE(&s->text.lock);
    s->by_path.digest = *digest;
    s->by_path.known = true;
    return 0;
}
