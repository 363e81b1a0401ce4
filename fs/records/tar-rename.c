/* How much of the key can stay follows from the name with the least room, of all members of the record. So members are
 * looked at twice: all of them once, then those of each part that is read. */
#include "fs/records/tar-rename.h"

#include "fs/records/record-scan.h"
#include "fs/records/tar-header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct tar_look {
    const struct tar_record *record;
    struct record_scan scan; /* bytes that are not in memory; its window exists once it is needed */
    uint64_t begin, next;    /* the member, in the record */
    struct tar_area area;
    const char *bytes; /* of the area */
};

static void look_init(struct tar_look *l, const struct tar_record *record)
{
    *l = (struct tar_look){
        .record = record,
        .scan = {.size = record->length, .read = record->read, .user = record->user},
    };
}

static void look_fini(struct tar_look *l)
{
    if (l->scan.window)
        munmap(l->scan.window, SCAN_WINDOW);
}

/* Mapped: each thread of malloc would keep the memory of its largest window. */
static unsigned char *window_map(void)
{
    void *window = mmap(NULL, SCAN_WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return window == MAP_FAILED ? NULL : window;
}

static int look_at(struct tar_look *l, size_t n)
{
    const struct tar_record *r = l->record;
    if (n > r->length - l->begin)
        return -EBADMSG;
    if (l->begin >= r->from && l->begin + n <= r->to) {
        l->bytes = r->bytes + (l->begin - r->from);
        return 0;
    }
    if (!l->scan.window && !(l->scan.window = window_map()))
        return -ENOMEM;
    l->bytes = (const char *)scan_look(&l->scan, l->begin, n);
    return l->bytes ? 0 : l->scan.error;
}

static int look_member(struct tar_look *l, uint64_t begin)
{
    int more;
    l->begin = begin;
    tar_area_init(&l->area);
    do {
        int error = look_at(l, l->area.n);
        if (error)
            return error;
        more = tar_area_take(&l->area, l->bytes);
    } while (more > 0);
    uint64_t left = l->record->length - begin - l->area.n;
    l->next = begin + l->area.n + l->area.data;
    return more ? more : l->area.data > left ? -EBADMSG : 0;
}

/* --- the cut --- */

static bool kept_fits(const struct tar_look *l, const struct tar_naming *naming, size_t kept)
{
    struct tar_naming tried = *naming;
    tried.kept = kept;
    return tar_area_rename(&l->area, l->bytes, &tried, NULL) == 0;
}

/* Cuts at the start of a UTF-8 character. */
static int member_cut(const struct tar_look *l, struct tar_naming *naming)
{
    const struct tar_area *a = &l->area;
    size_t most = naming->kept < a->stem ? naming->kept : a->stem, kept = 0;
    if (kept_fits(l, naming, most))
        kept = most;
    else if (!kept_fits(l, naming, 0))
        return -ENAMETOOLONG;
    for (size_t none = most; none - kept > 1;) {
        size_t middle = kept + (none - kept) / 2;
        if (kept_fits(l, naming, middle))
            kept = middle;
        else
            none = middle;
    }
    if (kept == a->stem)
        return 0;
    const char *name = l->bytes + a->name, *slash = memrchr(name, '/', a->length), *key = slash ? slash + 1 : name;
    size_t stem = tar_key_length(name, a->length) - (size_t)(key - name);
    while (kept > 0 && kept < stem && ((unsigned char)key[kept] & 0xc0) == 0x80)
        kept--;
    naming->kept = kept;
    return 0;
}

static int cut_members(const struct tar_record *record, struct tar_look *l, struct tar_cut *cut)
{
    uint64_t mark = 0, members = 0;
    for (uint64_t at = 0; at < record->length; at = l->next) {
        int error = look_member(l, at);
        if (!error && ++members > TAR_MEMBERS_MOST)
            error = -EFBIG;
        if (!error && l->area.file)
            error = member_cut(l, &cut->naming);
        if (error)
            return error;
        for (; mark * TAR_MARK_EVERY < l->next; mark++)
            cut->mark[mark] = (uint32_t)(at / TAR_BLOCK);
    }
    return 0;
}

int tar_cut_make(const struct tar_record *record, uint64_t position, struct tar_cut **cut)
{
    struct tar_look look;
    struct tar_cut *c = calloc(1, sizeof *c + (record->length / TAR_MARK_EVERY + 1) * sizeof *c->mark);
    if (!c)
        return -ENOMEM;
    c->naming.kept = SIZE_MAX;
    snprintf(c->naming.prefix, sizeof c->naming.prefix, "%" PRIu64 "-", position);
    look_init(&look, record);
    int error = cut_members(record, &look, c);
    look_fini(&look);
    if (error)
        free(c);
    else
        *cut = c;
    return error;
}

/* --- a part --- */

static int member_write(const struct tar_look *l, const struct tar_naming *naming, char *area)
{
    const struct tar_record *r = l->record;
    uint64_t end = l->begin + l->area.n, from = l->begin > r->from ? l->begin : r->from, to = end < r->to ? end : r->to;
    int error = tar_area_rename(&l->area, l->bytes, naming, area);
    if (!error && from < to)
        memcpy(r->bytes + (from - r->from), area + (from - l->begin), to - from);
    return error;
}

static int rename_members(struct tar_look *l, const struct tar_cut *cut, char **area)
{
    const struct tar_record *r = l->record;
    size_t room = 0;
    int error = 0;
    for (uint64_t at = cut->mark[r->from / TAR_MARK_EVERY] * (uint64_t)TAR_BLOCK; at < r->to && !error; at = l->next) {
        if (at >= r->from)
            l->scan.filled = 0; /* it reads only this area: the others are in memory */
        error = look_member(l, at);
        if (error || !l->area.file || at + l->area.n <= r->from)
            continue;
        if (l->area.n > room) {
            free(*area);
            room = l->area.n;
            *area = malloc(room);
        }
        error = *area ? member_write(l, &cut->naming, *area) : -ENOMEM;
    }
    return error;
}

int tar_rename(const struct tar_record *record, const struct tar_cut *cut)
{
    struct tar_look look;
    char *area = NULL;
    if (record->from >= record->to)
        return 0;
    look_init(&look, record);
    int error = rename_members(&look, cut, &area);
    free(area);
    look_fini(&look);
    return error;
}
