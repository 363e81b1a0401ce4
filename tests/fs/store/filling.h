/* For tests of shards alone: a catalog of files whose bytes are a function of name and offset, put and read part by
 * part without any source being read. Every function ends the program when the test cannot go on. */
#ifndef TESTS_FS_STORE_FILLING_H
#define TESTS_FS_STORE_FILLING_H

#include "fs/store/shard.h"

struct filling {
    char source[4096];
    struct catalog *catalog;
    struct cut parts;
    struct value_codec_state *codec;
};

void filling_begin(struct filling *f);
/* An empty file of that size, or one that is given another size. Names that begin with "text" get bytes that shrink. */
void filling_add(struct filling *f, const char *name, uint64_t size);
void filling_add_many(struct filling *f, const char *name, int files, uint64_t size); /* NAME-000, NAME-001, … */
void filling_remove(struct filling *f, const char *name);
void filling_scan(struct filling *f); /* again; nothing may use the catalog of before */
void filling_end(struct filling *f);

uint32_t filling_file(const struct filling *f, const char *name);
uint64_t filling_size(const struct filling *f, uint32_t file);
void filling_bytes(const struct filling *f, uint32_t file, uint64_t offset, void *out, size_t n);

/* A fresh directory on a tmpfs, removed with all in it when the program exits; forked children do not remove it. */
const char *filling_ram(void);

/* Both tiers are directories, NULL for none. */
struct shard *filling_open(const struct filling *f, const char *ram, uint64_t ram_bytes, const char *ssd,
                           uint64_t ssd_bytes);
/* One tier alone, in that directory. */
struct shard *filling_open_tier(const struct filling *f, enum tier_name tier, const char *directory, uint64_t bytes);
struct tier_status filling_status(struct shard *s, enum tier_name tier);
void filling_log(void); /* what is logged goes into the file test_path("log") */

/* Put the bytes of whole parts of a file: 0 or the error of shard_reserve. Any thread with its own codec. */
int filling_put(const struct filling *f, struct shard *s, struct value_codec_state *codec, uint32_t file,
                uint64_t offset, uint32_t length);
int filling_put_file(const struct filling *f, struct shard *s, uint32_t file); /* the whole file, in pieces */
int filling_put_all(const struct filling *f, struct shard *s);                 /* every file; the last error */

/* Read from the tier that holds it: 0 when the bytes are right, -EBADMSG when not, -ENOENT. */
int filling_check(const struct filling *f, struct shard *s, uint32_t file, uint64_t offset, uint32_t length);
int filling_check_file(const struct filling *f, struct shard *s, uint32_t file);
/* All files that are not empty, counted. */
struct outcome {
    int right, absent, wrong;
};
struct outcome filling_check_all(const struct filling *f, struct shard *s);

#endif
