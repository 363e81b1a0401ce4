/* A table of open files; a handle lives as long as the table or an operation refers to it. */
#include "fs/mount/control/handles.h"

#include "fs/mount/control/inside.h"

#include "fs/base/cleanup.h"

#include <errno.h>

struct handles {
    struct control *control;
    uint32_t generation;
    pthread_mutex_t lock; /* of the slots, and of the handles' references */
    struct handle *slot[HANDLES_MOST];
};

int handles_create(struct control *control, uint32_t generation, struct handles **out)
{
    struct handles *handles = calloc(1, sizeof *handles);

    if (!handles)
        return -ENOMEM;
    handles->control = control;
    handles->generation = generation;
    pthread_mutex_init(&handles->lock, NULL);
    *out = handles;
    return 0;
}

static void handle_destroy(struct handle *handle)
{
    stream_fini(&handle->stream);
    reply_put(handle->text);
    if (handle->list)
        samples_put(handle->list);
    pthread_mutex_destroy(&handle->lock);
    free(handle);
}

void handles_destroy(struct handles *handles)
{
    if (!handles)
        return;
    for (size_t i = 0; i < HANDLES_MOST; i++)
        if (handles->slot[i])
            handle_destroy(handles->slot[i]);
    pthread_mutex_destroy(&handles->lock);
    free(handles);
}

static int handle_create(struct handles *handles, struct str *text, struct samples *list, struct handle **out)
{
    CLEANUP_FREE struct handle *handle = calloc(1, sizeof *handle);

    if (!handle)
        return -ENOMEM;
    if (text) {
        handle->text = reply_create(text);
        if (!handle->text)
            return -ENOMEM;
    }
    handle->list = list ? samples_get(list) : NULL;
    handle->control = handles->control;
    handle->references = 1;
    pthread_mutex_init(&handle->lock, NULL);
    stream_init(&handle->stream, &control_stream_rules, &handles->control->pool, handle);
    *out = steal_pointer(handle);
    return 0;
}

/* The lock is held. From then on the handle may be used, and closed, by others. */
static int place_handle(struct handles *handles, struct handle *handle, uint64_t *fh)
{
    for (uint32_t i = 0; i < HANDLES_MOST; i++) {
        if (handles->slot[i])
            continue;
        handles->slot[i] = handle;
        *fh = (uint64_t)handles->generation << 32 | i;
        return 0;
    }
    return -ENFILE;
}

int handles_open(struct handles *handles, struct str *text, struct samples *list, uint64_t *fh)
{
    struct handle *handle;
    int error = handle_create(handles, text, list, &handle);

    if (error)
        return error;
    pthread_mutex_lock(&handles->lock);
    error = place_handle(handles, handle, fh);
    pthread_mutex_unlock(&handles->lock);
    if (error)
        handle_destroy(handle);
    return error;
}

int handles_check(const struct handles *handles, uint64_t fh)
{
    return fh >> 32 == handles->generation && (uint32_t)fh < HANDLES_MOST ? 0 : -ESTALE;
}

int handles_get(struct handles *handles, uint64_t fh, struct handle **out)
{
    int error = handles_check(handles, fh);

    if (error)
        return error;
    pthread_mutex_lock(&handles->lock);
    *out = handles->slot[(uint32_t)fh];
    if (*out)
        (*out)->references++;
    pthread_mutex_unlock(&handles->lock);
    return *out ? 0 : -ESTALE;
}

void handles_put(struct handles *handles, struct handle *handle)
{
    pthread_mutex_lock(&handles->lock);
    bool last = --handle->references == 0;
    pthread_mutex_unlock(&handles->lock);
    if (last)
        handle_destroy(handle);
}

void handles_close(struct handles *handles, uint64_t fh)
{
    if (handles_check(handles, fh) != 0)
        return;
    pthread_mutex_lock(&handles->lock);
    struct handle *handle = handles->slot[(uint32_t)fh];
    handles->slot[(uint32_t)fh] = NULL;
    pthread_mutex_unlock(&handles->lock);
    if (handle)
        handles_put(handles, handle);
}
