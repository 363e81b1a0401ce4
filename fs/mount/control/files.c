/* The files below plan/: a table of names, and the texts of the last ones. */
#include "fs/mount/control/files.h"

#include "fs/mount/control/plan.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <string.h>

static const double FOREVER = 1e9;

void files_init(struct files *files, uint64_t most)
{
    *files = (struct files){.most = most};
    pthread_mutex_init(&files->lock, NULL);
}

static void forget(struct files *files, struct request_file *file)
{
    if (file->text)
        files->bytes -= file->size;
    reply_put(file->text);
    free(file->name);
    *file = (struct request_file){0};
}

void files_fini(struct files *files)
{
    for (int i = 0; files->file && i < FILES_KNOWN; i++)
        forget(files, &files->file[i]);
    free(files->file);
    pthread_mutex_destroy(&files->lock);
}

static struct request_file *find(struct files *files, uint64_t ino)
{
    for (int i = 0; files->file && i < FILES_KNOWN; i++)
        if (files->file[i].ino == ino)
            return &files->file[i];
    return NULL;
}

/* A place for another file: free, or of the file that was least recently asked for. */
static struct request_file *place(struct files *files)
{
    if (!files->file)
        files->file = calloc(FILES_KNOWN, sizeof *files->file);
    if (!files->file)
        return NULL;
    struct request_file *oldest = files->file;
    for (int i = 0; i < FILES_KNOWN && oldest->ino; i++)
        if (!files->file[i].ino || files->file[i].used < oldest->used)
            oldest = &files->file[i];
    forget(files, oldest);
    return oldest;
}

static void drop_texts(struct files *files, const struct request_file *but)
{
    while (files->bytes > files->most) {
        struct request_file *oldest = NULL;
        for (int i = 0; i < FILES_KNOWN; i++) {
            struct request_file *f = &files->file[i];
            if (f->text && f != but && (!oldest || f->used < oldest->used))
                oldest = f;
        }
        if (!oldest)
            return;
        files->bytes -= oldest->size;
        reply_put(steal_pointer(oldest->text));
    }
}

static uint64_t ino_of(const char *name, const struct plan_origin *origin)
{
    return (hash64(&origin->key, sizeof origin->key, hash64(name, strlen(name), 0)) & ~INO_LIST) | INO_REQUEST;
}

/* The text is remembered, and what was known by that number keeps it. */
static int remember(struct files *files, const char *name, const struct plan_origin *origin, struct reply *text,
                    uint64_t *ino)
{
    int error = 0;

    *ino = ino_of(name, origin);
    pthread_mutex_lock(&files->lock);
    struct request_file *file = find(files, *ino);
    if (!file && (file = place(files))) {
        *file = (struct request_file){
            .ino = *ino, .directory = origin->directory, .key = origin->key, .name = strdup(name), .size = text->text.length};
        if (!file->name)
            *file = (struct request_file){0};
    }
    if (!file || !file->ino) {
        error = -ENOMEM;
    } else {
        file->used = ++files->asked;
        if (!file->text) {
            file->text = reply_get(text);
            files->bytes += file->size;
        }
        drop_texts(files, file);
    }
    pthread_mutex_unlock(&files->lock);
    return error;
}

/* The reply to the pairs of a name; `pinned` (NULL: whichever it is now) is the directory that is meant. */
static int answer(fuse_req_t req, const char *name, const struct digest *pinned, struct plan_origin *origin,
                  struct reply **text, struct str *why)
{
    struct control *control = fuse_req_userdata(req);
    const struct asker asker = {control_gave_up, req};
    CLEANUP_REQUEST struct request request = REQUEST_INIT;
    CLEANUP_STR struct str reply = STR_INIT;
    char digest[DIGEST_TEXT];

    if (!control_filled(control)) {
        str_adds(why, "there is no catalog yet: this node waits for its first world, which brings it");
        return -EAGAIN;
    }
    request.line = strdup(name);
    if (!request.line)
        return -ENOMEM;
    int error = request_parse_pairs(&verb_plan, request.line, strlen(name), ',', &request, why);
    if (!error && pinned && !request.value[PLAN_KEY_DIRECTORY].text)
        request.value[PLAN_KEY_DIRECTORY] = (struct request_value){digest_format(pinned, digest), DIGEST_TEXT - 1};
    if (!error)
        error = plan_answer(control, &request, &asker, origin, &reply, why);
    if (error)
        return error;
    *text = reply_create(&reply);
    return *text ? 0 : -ENOMEM;
}

static void refuse(fuse_req_t req, const char *name, int error, const struct str *why)
{
    CLEANUP_STR struct str line = STR_INIT;

    if (error == -EINTR)
        return;
    str_addf(&line, "plan/%s", name);
    control_note_refused(fuse_req_userdata(req), fuse_req_ctx(req), line.data, line.length, error,
                         why->length ? why->data : strerror(-error));
}

int files_lookup(fuse_req_t req, const char *name, struct fuse_entry_param *entry)
{
    struct control *control = fuse_req_userdata(req);
    CLEANUP_STR struct str why = STR_INIT;
    struct plan_origin origin;
    struct reply *text;

    if (!strchr(name, '='))
        return -ENOENT;
    int error = answer(req, name, NULL, &origin, &text, &why);
    if (error) {
        refuse(req, name, error, &why);
        return error;
    }
    error = remember(&control->files, name, &origin, text, &entry->ino);
    if (!error) {
        entry->attr_timeout = FOREVER;
        control_stat_file(control, entry->ino, (off_t)text->text.length, &entry->attr);
    }
    reply_put(text);
    return error;
}

void files_open(fuse_req_t req, uint64_t ino, struct fuse_file_info *fi)
{
    off_t size;
    int error = files_size(fuse_req_userdata(req), ino, &size);

    fi->fh = UINT64_MAX;
    fi->keep_cache = 1;
    if (error)
        fuse_reply_err(req, -error);
    else
        fuse_reply_open(req, fi);
}

int files_size(struct control *control, uint64_t ino, off_t *size)
{
    struct files *files = &control->files;

    pthread_mutex_lock(&files->lock);
    const struct request_file *file = find(files, ino);
    if (file)
        *size = (off_t)file->size;
    pthread_mutex_unlock(&files->lock);
    return file ? 0 : -ESTALE;
}

/* The text if it is still there, and what to make it from. `name` is the caller's to free. */
static int recall(struct files *files, uint64_t ino, struct reply **text, char **name, struct plan_origin *origin)
{
    int error = -ESTALE;

    pthread_mutex_lock(&files->lock);
    struct request_file *file = find(files, ino);
    if (file) {
        file->used = ++files->asked;
        *text = file->text ? reply_get(file->text) : NULL;
        *origin = (struct plan_origin){file->directory, file->key};
        *name = strdup(file->name);
        error = *name ? 0 : -ENOMEM;
    }
    pthread_mutex_unlock(&files->lock);
    return error;
}

/* It must be made of the same again: a list of the name, or the directory, may be gone. */
static int make_again(fuse_req_t req, const char *name, const struct plan_origin *origin, struct reply **text)
{
    struct control *control = fuse_req_userdata(req);
    CLEANUP_STR struct str why = STR_INIT;
    struct plan_origin made;
    uint64_t ino;
    int error = answer(req, name, &origin->directory, &made, text, &why);

    if (!error && memcmp(&made.key, &origin->key, sizeof made.key) != 0) {
        str_adds(&why, "the sample list is another one than when the file was opened");
        reply_put(steal_pointer(*text));
        error = -ESTALE;
    }
    if (error)
        refuse(req, name, error, &why);
    return error ? error : remember(&control->files, name, &made, *text, &ino);
}

static int text_of(fuse_req_t req, uint64_t ino, struct reply **text)
{
    struct control *control = fuse_req_userdata(req);
    CLEANUP_FREE char *name = NULL;
    struct plan_origin origin;

    *text = NULL;
    int error = recall(&control->files, ino, text, &name, &origin);
    return error || *text ? error : make_again(req, name, &origin, text);
}

void files_read(fuse_req_t req, uint64_t ino, size_t size, uint64_t offset)
{
    struct reply *text;
    int error = text_of(req, ino, &text);

    if (error) {
        fuse_reply_err(req, -error);
    } else {
        size_t length = text->text.length, at = offset < length ? (size_t)offset : length;
        fuse_reply_buf(req, text->text.data + at, size < length - at ? size : length - at);
    }
    reply_put(text);
}
