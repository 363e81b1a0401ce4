/* A note in the tier's lock file says which files are being ingested. If the process dies of them, the next one finds
 * the note. The note overwrites the previous one, so that it has room on a full disk. It need not survive a crash of
 * the machine. */
#include "fs/store/rocks-inside.h"

#include "fs/base/hash.h"

#include <string.h>
#include <unistd.h>

/* As stored. A damaged, short or missing note is empty. */
struct stored_note {
    char magic[8];
    struct rocks_note note;
    uint64_t checksum; /* of the fields before it */
};
_Static_assert(sizeof(struct stored_note) == 280, "a note has no holes");

static const char magic[8] = "dealfsTK";

static uint64_t note_sum(const struct stored_note *s)
{
    return hash64(s, offsetof(struct stored_note, checksum), 0);
}

int rocks_note_write(const struct rocks *r, const struct rocks_note *note)
{
    struct stored_note s = {.note = *note};
    memcpy(s.magic, magic, sizeof magic);
    s.checksum = note_sum(&s);
    ssize_t n = pwrite(r->note, &s, sizeof s, 0);
    return n == (ssize_t)sizeof s ? 0 : n < 0 ? -errno : -ENOSPC;
}

int rocks_note_clear(const struct rocks *r)
{
    static const struct rocks_note nothing;
    return rocks_note_write(r, &nothing);
}

int rocks_note_read(const struct rocks *r, struct rocks_note *note)
{
    struct stored_note s;
    ssize_t n = pread(r->note, &s, sizeof s, 0);
    *note = (struct rocks_note){0};
    if (n < 0)
        return -errno;
    if (n == (ssize_t)sizeof s && memcmp(s.magic, magic, sizeof magic) == 0 && s.checksum == note_sum(&s) &&
        s.note.files <= ROCKS_NOTED)
        *note = s.note;
    return 0;
}
