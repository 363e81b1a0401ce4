/* A table of open files. A handle lives as long as the table or an operation has a reference. */
#include "fs/control/control-handles.h"

#include "fs/control/control-private.h"

#include "fs/base/cleanup.h"

#include <errno.h>

struct control_handles {
    struct control *control;
    const struct stream_rules *rules;
    uint32_t generation;
    pthread_mutex_t lock; /* guards all fields below, and the handles' reference counts */
    uint32_t others;      /* number of slots that other users have */
    struct control_handle *slot[HANDLES_MOST];
};

int handles_create(struct control *control, const struct stream_rules *rules, struct control_handles **out)
{
    struct control_handles *handles = calloc(1, sizeof *handles);
    if (!handles)
        return -ENOMEM;
    handles->control = control;
    handles->rules = rules;
    handles->generation = control->config.generation;
    pthread_mutex_init(&handles->lock, NULL);
    *out = handles;
    return 0;
}

static void handle_destroy(struct control_handle *handle)
{
    stream_fini(&handle->stream);
    reply_put(handle->text);
    samples_put(handle->list);
    pthread_mutex_destroy(&handle->lock);
    free(handle);
}

void handles_destroy(struct control_handles *handles)
{
    if (!handles)
        return;
    for (size_t i = 0; i < HANDLES_MOST; i++)
        if (handles->slot[i])
            handle_destroy(handles->slot[i]);
    pthread_mutex_destroy(&handles->lock);
    free(handles);
}

static struct control_handle *handle_create(struct control_handles *handles, bool other, struct reply *text,
                                            struct samples *list)
{
    struct control_handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        return NULL;
    handle->other = other;
    handle->text = text ? reply_get(text) : NULL;
    handle->list = list ? samples_get(list) : NULL;
    handle->control = handles->control;
    handle->references = 1;
    pthread_mutex_init(&handle->lock, NULL);
    stream_init(&handle->stream, handles->rules, &handles->control->budget, handles->control->config.mount->state,
                handle);
    return handle;
}

/* The caller holds the lock. From here on other threads may use and close the handle. */
static int place_handle(struct control_handles *handles, struct control_handle *handle, uint64_t *fh)
{
    if (handle->other && handles->others == HANDLES_OTHERS)
        return -ENFILE;
    for (uint32_t i = 0; i < HANDLES_MOST; i++) {
        if (handles->slot[i])
            continue;
        handles->slot[i] = handle;
        handles->others += handle->other;
        *fh = (uint64_t)handles->generation << 32 | i;
        return 0;
    }
    return -ENFILE;
}

int handles_open(struct control_handles *handles, bool other, struct reply *text, struct samples *list, uint64_t *fh)
{
    struct control_handle *handle = handle_create(handles, other, text, list);
    if (!handle)
        return -ENOMEM;
    pthread_mutex_lock(&handles->lock);
    int error = place_handle(handles, handle, fh);
    pthread_mutex_unlock(&handles->lock);
    if (error)
        handle_destroy(handle);
    return error;
}

int handles_check(const struct control_handles *handles, uint64_t fh)
{
    return fh >> 32 == handles->generation && (uint32_t)fh < HANDLES_MOST ? 0 : -ESTALE;
}

int handles_get(struct control_handles *handles, uint64_t fh, struct control_handle **out)
{
    int error = handles_check(handles, fh);
    if (error)
        return error;
    LOCK_SCOPE(&handles->lock);
    *out = handles->slot[(uint32_t)fh];
    if (*out)
        (*out)->references++;
    return *out ? 0 : -ESTALE;
}

void handles_put(struct control_handles *handles, struct control_handle *handle)
{
    pthread_mutex_lock(&handles->lock);
    bool last = --handle->references == 0;
    pthread_mutex_unlock(&handles->lock);
    if (last)
        handle_destroy(handle);
}

void handles_visit(struct control_handles *handles, void (*visit)(struct control_handle *handle))
{
    for (uint32_t i = 0; i < HANDLES_MOST; i++) {
        struct control_handle *handle;
        if (handles_get(handles, (uint64_t)handles->generation << 32 | i, &handle) != 0)
            continue;
        visit(handle);
        handles_put(handles, handle);
    }
}

void handles_close(struct control_handles *handles, uint64_t fh)
{
    if (handles_check(handles, fh) != 0)
        return;
    pthread_mutex_lock(&handles->lock);
    struct control_handle *handle = handles->slot[(uint32_t)fh];
    handles->slot[(uint32_t)fh] = NULL;
    handles->others -= handle && handle->other;
    pthread_mutex_unlock(&handles->lock);
    if (handle)
        handles_put(handles, handle);
}
