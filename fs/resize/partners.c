/* Implements partners.h. */
#include "fs/resize/partners.h"

#include "fs/base/cleanup.h"
#include "fs/base/ready.h"
#include "fs/resize/originals.h"
#include "fs/wire/message.h"

#include <string.h>

_Static_assert(sizeof((struct resizing_record *)0)->word == sizeof(struct derived_record), "a record is what it is");
_Static_assert(sizeof((struct resizing_knows *)0)->library == sizeof((struct derived_terms *)0)->library, "a library");

static int say(int courier, enum resizing_kind kind, const void *payload, size_t n)
{
    return message_send(courier, (enum message_kind)kind, payload, n, NULL);
}

/* --- records --- */

static void pack_record(const struct derived *d, uint32_t file, struct resizing_record *to)
{
    *to = (struct resizing_record){.file = file};
    memcpy(to->word, &d->record[file], sizeof to->word);
}

static bool record_is_sound(const struct derived *d, const struct resizing_record *r)
{
    struct derived_record record;
    memcpy(&record, r->word, sizeof record);
    return r->file < d->files && r->zero == 0 && record.key == d->record[r->file].key &&
           record.outcome > DERIVED_UNKNOWN && record.outcome < OUTCOMES;
}

/* Existing records stay. */
static int take_records(struct derived *d, const void *bytes, size_t n)
{
    const struct resizing_record *r = bytes;
    size_t count = n / sizeof *r;
    if (n % sizeof *r)
        return -EBADMSG;
    for (size_t i = 0; i < count; i++)
        if (!record_is_sound(d, &r[i]))
            return -EBADMSG;
    for (size_t i = 0; i < count; i++)
        if (d->record[r[i].file].outcome == DERIVED_UNKNOWN)
            memcpy(&d->record[r[i].file], r[i].word, sizeof r[i].word);
    return 0;
}

/* The records that this node sends: of these files (NULL: of all). */
struct told {
    const uint32_t *file;
    uint32_t files;
    struct resizing_record *record; /* NULL until needed */
    size_t count;
};

static int pack_records(struct told *t, const struct derived *d)
{
    if (t->record)
        return 0;
    t->record = malloc(((size_t)t->files + 1) * sizeof *t->record);
    for (uint32_t i = 0; t->record && i < t->files; i++)
        if (d->record[t->file ? t->file[i] : i].outcome != DERIVED_UNKNOWN)
            pack_record(d, t->file ? t->file[i] : i, &t->record[t->count++]);
    return t->record ? 0 : -ENOMEM;
}

static int tell_records(int courier, struct told *t, const struct derived *d)
{
    int error = pack_records(t, d);
    return error ? error : say(courier, RESIZING_RECORDS, t->record, t->count * sizeof *t->record);
}

static void forget_records(const struct told *t, struct derived *d)
{
    for (uint32_t i = 0; i < t->files; i++) {
        struct derived_record *r = &d->record[t->file ? t->file[i] : i];
        *r = (struct derived_record){.key = r->key};
    }
}

/* When the first node's records arrive, forget our own: they return in our turn. So if two nodes contradict each other,
 * all nodes use the same record. */
static int hear_record(struct derived *d, struct told *mine, bool *forgotten, const void *bytes, size_t n)
{
    int error = pack_records(mine, d);
    if (!error && !*forgotten)
        forget_records(mine, d);
    *forgotten |= !error;
    return error ? error : take_records(d, bytes, n);
}

/* The last frame of the courier. */
struct last_word {
    enum resizing_kind kind;
    void *payload; /* has this length */
    size_t length;
};

static int hear_records(int courier, struct derived *d, struct told *mine, const struct last_word *last)
{
    bool forgotten = false;
    for (;;) {
        CLEANUP_FREE void *bytes = NULL;
        uint32_t kind;
        size_t n;
        int error = message_receive(courier, &kind, &bytes, &n, NULL);
        if (!error && kind == last->kind && n == last->length) {
            if (n > 0)
                memcpy(last->payload, bytes, n);
            return 0;
        }
        if (!error && kind == RESIZING_SHARE)
            error = tell_records(courier, mine, d);
        else if (!error)
            error = kind == RESIZING_RECORDS ? hear_record(d, mine, &forgotten, bytes, n) : -EBADMSG;
        if (error)
            return error;
    }
}

/* Sends the records of these files when the courier asks for them, and takes over the records of all nodes. */
static int exchange_records(int courier, struct derived *d, const uint32_t *file, uint32_t n,
                            const struct last_word *last)
{
    struct told mine = {.file = file, .files = n};
    int error = hear_records(courier, d, &mine, last);
    if (mine.record)
        /* in case the courier hung up before our turn */
        take_records(d, mine.record, mine.count * sizeof *mine.record);
    free(mine.record);
    return error;
}

/* --- the protocol --- */

static struct resizing_knows knows_of(const struct derived *d, uint64_t room)
{
    struct resizing_knows knows = {.catalog = *catalog_versions(d->original),
                                   .records = derived_digest(d),
                                   .bytes = catalog_bytes(d->original),
                                   .room = room,
                                   .side = d->terms.side,
                                   .quality = d->terms.quality};
    memcpy(knows.library, d->terms.library, sizeof knows.library);
    for (uint32_t file = 0; file < d->files; file++)
        knows.known += d->record[file].outcome != DERIVED_UNKNOWN;
    return knows;
}

int partners_begin(int courier, struct derived *d, uint64_t room, struct resizing_part *part)
{
    const struct resizing_knows knows = knows_of(d, room);
    const struct last_word begin = {RESIZING_BEGIN, part, sizeof *part};
    int error = say(courier, RESIZING_KNOWS, &knows, sizeof knows);
    return error ? error : exchange_records(courier, d, NULL, d->files, &begin);
}

int partners_tell(int courier, const struct resizing_progress *now, bool made)
{
    return say(courier, made ? RESIZING_MADE : RESIZING_PROGRESS, now, sizeof *now);
}

/* The courier sends nothing while it receives progress. */
bool partners_left(int courier)
{
    struct pollfd ready = {.fd = courier, .events = POLLIN | POLLRDHUP};
    return ready_wait(&ready, 1, 0) > 0 && (ready.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

int partners_end(int courier, struct derived *d, const uint32_t *file, uint32_t n)
{
    return exchange_records(courier, d, file, n, &(struct last_word){.kind = RESIZING_END});
}

void partners_fail(int courier, const char *why)
{
    say(courier, RESIZING_FAILED, why, strlen(why));
}
