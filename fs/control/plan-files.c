/* The files below plan/: a table of names, and a cache of their contents. */
#include "fs/control/plan-files.h"

#include "fs/control/control-private.h"
#include "fs/control/entries.h"
#include "fs/control/jobs.h"
#include "fs/control/owners.h"
#include "fs/control/plan-content.h"
#include "fs/control/plan-names.h"
#include "fs/control/stream-reads.h"
#include "fs/control/world-view.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"

#include <errno.h>
#include <string.h>

enum { FILES_KNOWN = 4096, FILES_OTHERS = 1024 }; /* others: the first places, for users other than the owner */

struct request_file {
    uint64_t ino;          /* 0: unused */
    struct digest meaning; /* of name, layout and list */
    struct digest layout;  /* zeros: there never was a world */
    char *name;
    bool made;         /* `key` and `size` are known, and final */
    struct digest key; /* of all inputs of the plan */
    uint64_t size;
    uint64_t used; /* counter value of the last use */
};

struct kept_content {
    struct kept_item item; /* first */
    struct plan_origin origin;
    struct file_content content;
};

struct plan_files {
    struct kept contents;      /* by inode number */
    pthread_mutex_t lock;      /* guards all fields below */
    struct request_file *file; /* FILES_KNOWN elements; NULL before the first file */
    uint64_t asked;
    uint64_t entered; /* total number of files */
};

static struct kept_content *content_of(struct kept_item *item)
{
    return (struct kept_content *)(void *)item;
}

static void content_fini(struct kept_item *item)
{
    content_put(&content_of(item)->content);
}

struct plan_files *plan_files_create(void)
{
    struct plan_files *files = calloc(1, sizeof *files);
    if (!files)
        return NULL;
    kept_init(&files->contents, sizeof(struct kept_content), content_fini, FILES_KNOWN, 0);
    pthread_mutex_init(&files->lock, NULL);
    return files;
}

struct kept *plan_files_kept(struct plan_files *files)
{
    return &files->contents;
}

void plan_files_destroy(struct plan_files *files)
{
    if (!files)
        return;
    kept_fini(&files->contents);
    for (int i = 0; files->file && i < FILES_KNOWN; i++)
        free(files->file[i].name);
    free(files->file);
    pthread_mutex_destroy(&files->lock);
    free(files);
}

/* The part of an inode number that depends on the file's meaning. */
#define INO_MEANING ((UINT64_C(1) << 44) - 1)

static uint64_t ino_of(const struct control *control, const struct digest *meaning, uint64_t entered)
{
    uint64_t part = hash64(&entered, sizeof entered, control->config.generation);
    return (hash64(meaning, sizeof *meaning, 0) & INO_MEANING) | (part & ~INO_MEANING & ~INO_LIST) | INO_REQUEST;
}

static struct request_file *file_find(struct plan_files *files, uint64_t ino)
{
    for (int i = 0; files->file && i < FILES_KNOWN; i++)
        if (files->file[i].ino && ((files->file[i].ino ^ ino) & INO_MEANING) == 0)
            return &files->file[i];
    return NULL;
}

/* A place for another file: free, or that of the least recently used file. Other users have the first places, so that
 * they cannot replace the owner's files. */
static struct request_file *file_place(struct plan_files *files, bool other)
{
    if (!files->file)
        files->file = calloc(FILES_KNOWN, sizeof *files->file);
    if (!files->file)
        return NULL;
    int from = other ? 0 : FILES_OTHERS, to = other ? FILES_OTHERS : FILES_KNOWN;
    struct request_file *oldest = &files->file[from];
    for (int i = from; i < to && oldest->ino; i++)
        if (!files->file[i].ino || files->file[i].used < oldest->used)
            oldest = &files->file[i];
    free(oldest->name);
    *oldest = (struct request_file){0};
    return oldest;
}

/* Releases the reference. */
static struct digest digest_of(struct samples *list)
{
    struct digest digest = list ? *samples_digest(list) : (struct digest){0};
    samples_put(list);
    return digest;
}

/* Zeros for lists that never change: creating them takes long. */
static struct digest list_of(struct control *control, const char *name)
{
    return digest_of(!name || samples_built_in(name) ? NULL : samples_table_find(control->samples, name));
}

static struct digest costs_of(struct control *control, const char *name)
{
    return digest_of(name ? samples_table_costs(control->samples, name) : NULL);
}

/* The current meaning of a name: sets meaning and layout. */
static int find_meaning(struct control *control, const char *name, struct request_file *file, struct str *why)
{
    CLEANUP_FREE char *text = node_texts_expand(&control->node_texts, name);
    struct plan_request wanted;
    int error = text ? content_parse(control, text, &wanted, why) : -ENOMEM;
    if (!error && !wanted.pinned)
        error = world_view_await(control, NULL, why);
    if (error)
        return error;
    file->layout = owners_layout(control, &wanted);
    const struct digest parts[] = {file->layout, list_of(control, wanted.samples), list_of(control, wanted.without),
                                   costs_of(control, wanted.cost), hash128(name, strlen(name), 0)};
    file->meaning = hash128(parts, sizeof parts, 0);
    return 0;
}

/* The caller holds the lock. */
static struct request_file *file_enter(struct control *control, bool other, const char *name,
                                       const struct request_file *meant)
{
    struct plan_files *files = control->files;
    uint64_t ino = ino_of(control, &meant->meaning, ++files->entered);
    struct request_file *file = file_find(files, ino);
    if (file) /* once in years: another meaning with the same number */
        return memcmp(&file->meaning, &meant->meaning, sizeof meant->meaning) == 0 ? file : NULL;
    char *copy = strdup(name);
    file = copy ? file_place(files, other) : NULL;
    if (!file) {
        free(copy);
        return NULL;
    }
    *file = *meant;
    file->ino = ino;
    file->name = copy;
    return file;
}

static void refuse_file(fuse_req_t req, const char *name, int error, const struct str *why)
{
    if (error != -EINTR)
        control_note_request(req, error, why, "plan/%s", name);
}

static int look_up_file(fuse_req_t req, const char *name, struct fuse_entry_param *entry)
{
    struct control *control = fuse_req_userdata(req);
    CLEANUP_STR struct str why = STR_INIT;
    struct request_file meant = {0};
    int error = find_meaning(control, name, &meant, &why);
    if (error) {
        refuse_file(req, name, error, &why);
        return error;
    }
    LOCK_SCOPE(&control->files->lock);
    struct request_file *file = file_enter(control, !control_is_owner(control, fuse_req_ctx(req)->uid), name, &meant);
    if (file) {
        file->used = ++control->files->asked;
        entry->ino = file->ino;
        entry->attr_timeout = file->made ? FOREVER : 0;
        entry_stat_file(control, file->ino, (off_t)file->size, &entry->attr);
    }
    return file ? 0 : -ENOMEM;
}

void plan_files_lookup(fuse_req_t req, const char *name)
{
    struct fuse_entry_param entry = {0};
    int error = strchr(name, '=') ? look_up_file(req, name, &entry) : -ENOENT;
    if (error)
        fuse_reply_err(req, -error);
    else
        fuse_reply_entry(req, &entry);
}

/* What is known about a file. */
struct known_file {
    struct plan_files *files;
    char *name;
    struct plan_origin origin; /* `key` only if it was made */
    bool made;
    off_t size;
    struct digest content_key;
    struct kept_item *kept; /* a reference to its content; NULL: it must be made */
};

static const struct file_content *known_content(const struct known_file *known)
{
    return &content_of(known->kept)->content;
}

static void known_fini(struct known_file *known)
{
    free(known->name);
    if (known->kept)
        kept_put(&known->files->contents, known->kept);
}

/* --- after the death of a server --- */

static char *names_path(const struct control *control)
{
    struct str path = STR_INIT;
    str_addf(&path, "%s/plan-names", control->config.mount->state);
    return str_steal(&path);
}

static bool is_meant(void *ino, const struct digest *meaning)
{
    return ((hash64(meaning, sizeof *meaning, 0) ^ *(const uint64_t *)ino) & INO_MEANING) == 0;
}

/* Find a file that the previous server had made. */
static int file_find_again(struct control *control, uint64_t ino)
{
    struct plan_files *files = control->files;
    struct named_plan plan;
    CLEANUP_FREE char *path = names_path(control);
    int error = path ? plan_names_find(path, is_meant, &ino, &plan) : -ENOMEM;
    if (error)
        return error == -ENOMEM ? error : -ESTALE;
    pthread_mutex_lock(&files->lock);
    struct request_file *file = file_find(files, ino) ? NULL : file_place(files, false);
    if (file)
        *file = (struct request_file){.ino = ino,
                                      .meaning = plan.meaning,
                                      .layout = plan.layout,
                                      .name = steal_pointer(plan.name),
                                      .made = true,
                                      .key = plan.key,
                                      .size = plan.size,
                                      .used = ++files->asked};
    pthread_mutex_unlock(&files->lock);
    free(plan.name);
    return 0;
}

/* For the next server. */
static void file_note(struct control *control, uint64_t ino)
{
    struct named_plan plan = {.name = NULL};
    CLEANUP_FREE char *path = names_path(control);
    pthread_mutex_lock(&control->files->lock);
    const struct request_file *file = file_find(control->files, ino);
    if (file)
        plan = (struct named_plan){file->meaning, file->layout, file->key, file->size, strdup(file->name)};
    pthread_mutex_unlock(&control->files->lock);
    int error = path && plan.name ? plan_names_add(path, &plan) : -ENOMEM;
    if (error)
        log_limited(LOG_LEVEL_WARNING, 1, "record a file of plan/ in %s: %s", path ? path : "the state directory",
                    strerror(-error));
    free(plan.name);
}

static int file_recall(struct plan_files *files, uint64_t ino, struct known_file *known)
{
    int error = -ESTALE;
    *known = (struct known_file){0};
    pthread_mutex_lock(&files->lock);
    struct request_file *file = file_find(files, ino);
    if (file) {
        file->used = ++files->asked;
        *known = (struct known_file){.files = files,
                                     .name = strdup(file->name),
                                     .origin = {file->layout, file->key},
                                     .made = file->made,
                                     .size = (off_t)file->size};
        memcpy(known->content_key.byte, &file->ino, sizeof file->ino);
        error = known->name ? 0 : -ENOMEM;
    }
    pthread_mutex_unlock(&files->lock);
    if (!error && known->made)
        known->kept = kept_find(&files->contents, &known->content_key);
    return error;
}

/* The size is kept even if the content is dropped. */
static int file_remember(struct plan_files *files, uint64_t ino, const struct kept_content *content)
{
    LOCK_SCOPE(&files->lock);
    struct request_file *file = file_find(files, ino);
    if (file) {
        file->made = true;
        file->layout = content->origin.layout;
        file->key = content->origin.key;
        file->size = content_length(&content->content);
    }
    return file ? 0 : -ESTALE;
}

/* Make it again: the same content, or fail, since the list of that name may have changed. */
static int make_content(struct request_job *job, const struct known_file *known, struct kept_content *made,
                        struct str *why)
{
    made->origin.layout = known->origin.layout;
    int error = content_make(job, known->name, &made->origin, &made->content, why);
    if (!error && known->made && !digest_equal(&made->origin.key, &known->origin.key))
        error = str_fail(why, -ESTALE, "the sample list was replaced after the file was opened");
    return error;
}

/* Another request may be making it just now. */
static int make_known(struct request_job *job, struct known_file *known)
{
    struct control *control = control_of(job->req);
    struct plan_files *files = control->files;
    const struct asker asker = {.gave_up = job_gave_up, .user = job};
    CLEANUP_STR struct str why = STR_INIT;
    struct kept_item *item;
    int error = kept_get(&files->contents, &known->content_key, &asker, &item);
    if (error == 1) {
        error = make_content(job, known, content_of(item), &why);
        if (error)
            kept_fail(&files->contents, item);
        else
            kept_done(&files->contents, item, content_bytes(&content_of(item)->content));
    }
    if (error) {
        refuse_file(job->req, known->name, error, &why);
        return error;
    }
    known->kept = item;
    known->size = (off_t)content_length(known_content(known));
    error = file_remember(files, job->ino, content_of(item));
    if (!error && !known->made && control_is_owner(control, fuse_req_ctx(job->req)->uid))
        file_note(control, job->ino);
    return error;
}

/* A stream's bytes may be cached; otherwise a worker waits for them. */
static void run_stream_read(struct request_job *job);
static void read_stream(fuse_req_t req, const struct request_job *job, const struct known_file *known)
{
    if (stream_read_now(req, known_content(known)->stream, job))
        return;
    struct request_job reading = *job;
    bool owner = control_is_owner(control_of(req), fuse_req_ctx(req)->uid);
    reading.run = run_stream_read;
    reading.of_anybody = true;
    reading.work.class = owner ? WORK_STREAM : WORK_STREAM_OTHERS;
    job_defer(req, &reading, "plan");
}

static void reply_known(fuse_req_t req, const struct request_job *job, const struct known_file *known)
{
    struct stat st;
    switch ((enum file_operation)job->operation) {
    case FILE_GETATTR:
        entry_stat_file(control_of(req), job->ino, known->size, &st);
        fuse_reply_attr(req, &st, FOREVER);
        break;
    case FILE_OPEN:
        fuse_reply_open(req, &(struct fuse_file_info){.fh = UINT64_MAX, .keep_cache = 1});
        break;
    case FILE_READ:
        if (known_content(known)->stream)
            read_stream(req, job, known);
        else
            control_reply_part(req, known_content(known)->text, job->size, job->offset);
        break;
    }
}

/* Find the file, or make it. Another worker may have made it meanwhile, or an earlier server. */
static int recall_made(struct request_job *job, struct known_file *known)
{
    struct control *control = control_of(job->req);
    int error = file_recall(control->files, job->ino, known);
    if (error == -ESTALE && control_filled(control) && file_find_again(control, job->ino) == 0)
        error = file_recall(control->files, job->ino, known);
    return error || known->kept ? error : make_known(job, known);
}

static void run_stream_read(struct request_job *job)
{
    struct known_file known;
    int error = recall_made(job, &known);
    if (error)
        fuse_reply_err(job->req, -error);
    else
        stream_read_wait(job, known_content(&known)->stream);
    known_fini(&known);
}

static void run_file_job(struct request_job *job)
{
    struct known_file known;
    int error = recall_made(job, &known);
    if (error)
        fuse_reply_err(job->req, -error);
    else
        reply_known(job->req, job, &known);
    known_fini(&known);
}

void plan_files_answer(fuse_req_t req, enum file_operation operation, uint64_t ino, size_t size, uint64_t offset)
{
    struct request_job job = {.run = run_file_job, .operation = operation, .ino = ino, .size = size, .offset = offset};
    struct known_file known;
    int error = file_recall(control_of(req)->files, ino, &known);
    job.work.class = WORK_LONG;
    if (error == -ESTALE)
        job_defer(req, &job, "plan");
    else if (error)
        fuse_reply_err(req, -error);
    else if (operation == FILE_READ ? known.kept != NULL : known.made)
        reply_known(req, &job, &known);
    else
        job_defer(req, &job, known.name);
    known_fini(&known);
}
