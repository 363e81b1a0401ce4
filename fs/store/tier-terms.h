/* The two tiers by name; what is asked and told of one, and the room that it gives. */
#ifndef FS_STORE_TIER_TERMS_H
#define FS_STORE_TIER_TERMS_H

#include "fs/catalog/cut.h"
#include "fs/store/answer.h"

enum tier_name { TIER_RAM, TIER_SSD, TIERS };
extern const char *const tier_names[TIERS]; /* "ram", "ssd" */

/* Why a tier takes nothing more, or nothing at all. */
enum tier_state {
    TIER_ABSENT, /* not configured */
    TIER_LOCKED, /* the server before us still has it open, or descriptors or memory are short: tried again; or shut */
    TIER_OPEN,   /* holds and admits */
    TIER_CLOSED, /* holds, admits no more: an error stopped admission (ENOSPC, EDQUOT, EIO) */
    TIER_FAILED, /* cannot be opened: holds nothing; its files are left as they are */
};

struct tier_config {
    const char *directory;  /* NULL: absent. RAM: a tmpfs, whose files are mapped; SSD: direct reads */
    uint64_t capacity;      /* bytes of values */
    uint64_t device, inode; /* the directory's: no other one is used, and none is made; 0: any */
    bool shut;              /* it is never opened, and stays locked: servers have died, perhaps of it */
};

struct tier_status {
    enum tier_state state;
    int error;               /* the errno that closed or failed it, */
    const char *reason;      /* and in words where that does not tell; NULL: it does */
    uint64_t capacity, held; /* held: stored bytes, as budgeted */
    uint64_t parts, segments, dead, bad_values;
    uint64_t rewritten; /* bytes of live values that were moved to new segments, so far */
};

/* What a tier's budget counts beside the stored bytes of values. */
enum {
    VALUE_COST = 104,    /* at most this much of a segment's file goes with each value: keys, index, our record */
    SEGMENT_COST = 8192, /* and this with the segment */
};
size_t tier_segment_bytes(uint64_t capacity); /* about the length of a segment's file in a tier of this capacity */

/* Room for the values of a run of parts of one file, to be filled by the caller. */
struct room {
    int values;
    struct iovec value[PIECE_BYTES / VALUE_BYTES]; /* where the raw bytes go, one value each */
    uint32_t sealed[PIECE_BYTES / VALUE_BYTES];    /* the length of one that lies there as it is stored; 0: raw bytes */
    struct tier_rooms *rooms;
    struct segment *segment;
    uint32_t place;
    uint32_t file;
    uint64_t offset, bytes;
};

/* Stored values that are handed out as they lie, checked: `put` is told which, from 0, while the value is pinned. Of
 * one in blocks, the blocks that the span touches, without its header where these are not all: then it is `cut`. */
typedef void (*stored_put)(void *user, uint32_t i, const void *bytes, uint32_t length, bool cut);
struct values_out {
    stored_put put;
    void *user;
    uint32_t done;
};

#endif
