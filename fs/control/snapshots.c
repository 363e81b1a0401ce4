/* The last text of each generated file. */
#include "fs/control/snapshots.h"

#include "fs/control/control-private.h"
#include "fs/control/entries.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"

#include <errno.h>
#include <stdlib.h>

enum { JUST_BEFORE = 100000000 }; /* nanoseconds between a lookup and its open */

enum { SNAPSHOT_FILES = INO_PLAN };

struct snapshots {
    pthread_mutex_t lock; /* guards all fields below */
    struct {
        struct reply *text;
        uint64_t made; /* when */
    } last[SNAPSHOT_FILES];
};

struct snapshots *snapshots_create(void)
{
    struct snapshots *s = calloc(1, sizeof *s);
    if (s)
        pthread_mutex_init(&s->lock, NULL);
    return s;
}

void snapshots_destroy(struct snapshots *s)
{
    if (!s)
        return;
    for (int i = 0; i < SNAPSHOT_FILES; i++)
        reply_put(s->last[i].text);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct reply *snapshot_find(struct snapshots *s, uint64_t ino)
{
    struct reply *text = NULL;
    LOCK_SCOPE(&s->lock);
    if (s->last[ino].text && clock_now() - s->last[ino].made < JUST_BEFORE)
        text = reply_get(s->last[ino].text);
    return text;
}

static void snapshot_keep(struct snapshots *s, uint64_t ino, struct reply *text)
{
    pthread_mutex_lock(&s->lock);
    struct reply *old = s->last[ino].text;
    s->last[ino].text = reply_get(text);
    s->last[ino].made = clock_now();
    pthread_mutex_unlock(&s->lock);
    reply_put(old);
}

static int snapshot_generate(struct control *control, const struct root_entry *entry, uid_t uid, struct reply **text,
                             struct str *why)
{
    struct charge charge = control_charge(control, uid);
    struct str made = STR_INIT;
    int error = entry->generate(control, &made);
    if (!error)
        error = charge_add(&charge, made.length, why);
    if (error) {
        str_fini(&made);
        return error;
    }
    *text = reply_create(&made, &charge);
    return *text ? 0 : -ENOMEM;
}

int snapshots_get(fuse_req_t req, const struct root_entry *entry, bool fresh, struct reply **text)
{
    struct control *control = fuse_req_userdata(req);
    CLEANUP_STR struct str why = STR_INIT;
    *text = fresh ? NULL : snapshot_find(control->snapshots, entry->ino);
    if (*text)
        return 0;
    int error = snapshot_generate(control, entry, fuse_req_ctx(req)->uid, text, &why);
    if (error)
        control_note_request(req, error, &why, "open %s", entry->name);
    else
        snapshot_keep(control->snapshots, entry->ino, *text);
    return error;
}
