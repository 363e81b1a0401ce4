/* Types of the tier's interface: names, configuration, status, rooms. */
#ifndef FS_STORE_TIER_TERMS_H
#define FS_STORE_TIER_TERMS_H

#include "fs/catalog/cut.h"
#include "fs/store/answer.h"

enum tier_name { TIER_RAM, TIER_SSD, TIERS };
extern const char *const tier_names[TIERS]; /* "ram", "ssd" */

/* Why a tier admits nothing, or is not used. */
enum tier_state {
    TIER_ABSENT, /* not configured */
    TIER_LOCKED, /* the previous server still has it open, or descriptors or memory lack: tried again; or `shut` */
    TIER_OPEN,   /* caches and admits */
    TIER_CLOSED, /* caches, admits nothing more: an error stopped admission (ENOSPC, EDQUOT, EIO) */
    TIER_FAILED, /* cannot be opened: caches nothing; its files are not touched */
};

struct tier_config {
    const char *directory;  /* NULL: absent. RAM: a tmpfs, whose files are mapped; SSD: direct reads */
    uint64_t capacity;      /* bytes of values */
    uint64_t device, inode; /* of the directory: no other one is used or created; 0: any */
    bool verify_once;       /* RAM: verify values once, not at every read; see scrub.h */
    bool shut;              /* stays locked: servers have died, perhaps because of it */
};

struct tier_status {
    enum tier_state state;
    int error;               /* errno that closed or failed it */
    const char *reason;      /* explains the error if necessary; NULL: it does not */
    uint64_t capacity, held; /* held: stored bytes, by the budget */
    uint64_t parts, segments, dead, bad_values;
    uint64_t rewritten; /* total bytes of live values that were moved to new segments */
    struct {
        uint64_t rate, bytes, rounds; /* bytes per second; totals. rate 0: there is no scrubber */
    } scrub;
};

/* What a tier's budget counts in addition to the stored bytes of values. */
enum {
    VALUE_COST = 104,    /* maximum per value in a segment's file: keys, index, our record */
    SEGMENT_COST = 8192, /* maximum per segment */
};
size_t tier_segment_bytes(uint64_t capacity); /* approximate length of a segment's file in a tier of this capacity */

/* Room for the values of consecutive parts of one file; the caller fills it. */
struct room {
    int values;
    struct iovec value[PIECE_BYTES / VALUE_BYTES]; /* where the raw bytes go, one value each */
    uint32_t sealed[PIECE_BYTES / VALUE_BYTES];    /* length of a value that is already in stored form; 0: raw bytes */
    struct tier_rooms *rooms;
    struct segment *segment;
    uint32_t place;
    uint32_t file;
    uint64_t offset, bytes;
};

/* Hands out stored values, checked: `put` gets the position of the value, from 0; the value is pinned during the call.
 * Of a value in blocks, only the touched blocks are handed out; if these are not all, they come without header, and
 * `cut` is set. */
typedef void (*stored_put)(void *user, uint32_t i, const void *bytes, uint32_t length, bool cut);
struct values_out {
    stored_put put;
    void *user;
    bool verify; /* also values that were verified before */
    uint32_t done;
};

#endif
