/* What a server shares of its RAM tier with its courier, which can then answer other nodes without waking the server.
 *
 *   the map              one entry per part: whether it is cached, and where. Shared memory
 *   files of segments    the values in stored form. The courier gets a descriptor of each file that it asks for,
 *   spots                and where the values of that file are
 *
 * Only the server writes. A value is copied in three steps: read the part's entry, read the value from the file, read
 * the entry again. If the entry is the same, the copy is the value: the same entry never returns, and the bytes of a
 * value do not change while an entry leads to it. Nothing is locked or pinned. Files are not mapped: a page that is
 * missing would raise SIGBUS in a full tmpfs.
 *
 * When no entry leads to a segment any more, the server drops its file and frees its memory, although the courier may
 * still have it open; then it changes the word `dropped`. The courier then closes all files, and asks for them again as
 * needed.
 *
 * The courier verifies nothing. The asking node does, and asks a second time with FETCH_VERIFY if a value is damaged:
 * this question goes to the server, which verifies the value and loads a damaged one again.
 *
 * The courier marks its answers (payload_mark_shared), because they do not show that the server is alive. When a server
 * hangs, the asking node continues to ask the courier, with FETCH_SHARED.
 *
 * All messages about this are small, so that sending one waits for nobody. */
#ifndef FS_WIRE_TIER_SHARE_H
#define FS_WIRE_TIER_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An entry of the map. 0: not cached.
 *
 *   63    62     61…48   47………16   15…0
 *   held  tier   zero    segment  place of the part's first value
 */
static inline uint64_t entry_make(unsigned tier, uint32_t segment, uint32_t place)
{
    return 1ull << 63 | (uint64_t)tier << 62 | (uint64_t)segment << 16 | place;
}

static inline bool entry_held(uint64_t entry)
{
    return entry >> 63;
}

static inline unsigned entry_tier(uint64_t entry) /* enum tier_name; 0: RAM */
{
    return entry >> 62 & 1;
}

static inline uint32_t entry_segment(uint64_t entry)
{
    return (uint32_t)(entry >> 16);
}

static inline uint32_t entry_place(uint64_t entry)
{
    return (uint32_t)(entry & 0xffff);
}

/* Where a value is in the file of its segment. Zero: there is none at this place.
 *
 *   63         62…20                  19…0
 *   verified   offset in the file     length
 */
#define SPOT_VERIFIED (UINT64_C(1) << 63)
enum { SPOT_LENGTH_BITS = 20 };

static inline uint64_t spot_make(uint64_t at, uint32_t length)
{
    return at << SPOT_LENGTH_BITS | length;
}

static inline uint64_t spot_at(uint64_t spot)
{
    return (spot & ~SPOT_VERIFIED) >> SPOT_LENGTH_BITS;
}

static inline uint32_t spot_length(uint64_t spot)
{
    return (uint32_t)spot & ((1u << SPOT_LENGTH_BITS) - 1);
}

/* MESSAGE_SHARED brings two descriptors. */
enum { SHARE_MAP, SHARE_LARGE, SHARE_FDS };
struct message_shared {
    uint64_t pieces; /* SHARE_MAP has this many entries, by part, and then the word `dropped` */
    uint32_t files;
    /* SHARE_LARGE has struct cut_file[large] (fs/catalog/cut.h): files with one part per value. The others are one
     * part. A part's number is that of the file, plus the additional parts of earlier large files. */
    uint32_t large;
};

/* The answer MESSAGE_SEGMENT brings two descriptors; or none: the segment is not in a file now. */
enum { SHARE_FILE, SHARE_SPOTS };
struct message_segment {
    uint32_t number;
    uint32_t places; /* SHARE_SPOTS has this many spots (uint64_t) */
};

#endif
