/* The files below plan/: a table of names, and the texts of the last ones. */
#include "fs/control/plan-files.h"

#include "fs/control/control-private.h"
#include "fs/control/entries.h"
#include "fs/control/jobs.h"
#include "fs/control/plan-content.h"
#include "fs/control/plan-names.h"
#include "fs/control/stream-reads.h"
#include "fs/control/world-view.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"

#include <errno.h>
#include <string.h>

enum { FILES_KNOWN = 4096, FILES_OTHERS = 1024 }; /* the first of them other users than the mount's owner have */

struct request_file {
    uint64_t ino;          /* 0: none */
    struct digest meaning; /* of name, layout and list */
    struct digest layout;  /* zeros: there never was a world */
    char *name;
    bool made;         /* `key` and `size` are known, and stay */
    struct digest key; /* of all that the plan was made of */
    uint64_t size;
    struct file_content content;
    uint64_t used; /* when it was asked for last: a count */
};

struct plan_files {
    pthread_mutex_t lock;      /* of all below */
    struct request_file *file; /* FILES_KNOWN of them; NULL before the first */
    uint64_t most;             /* bytes of contents that are kept */
    uint64_t bytes;            /* that are */
    uint64_t asked;
    uint64_t entered; /* files, ever */
};

struct plan_files *plan_files_create(void)
{
    struct plan_files *files = calloc(1, sizeof *files);
    if (files)
        pthread_mutex_init(&files->lock, NULL);
    return files;
}

void plan_files_keep(struct plan_files *files, uint64_t most)
{
    pthread_mutex_lock(&files->lock);
    files->most = most;
    pthread_mutex_unlock(&files->lock);
}

static void file_forget(struct plan_files *files, struct request_file *file)
{
    files->bytes -= content_bytes(&file->content);
    content_put(&file->content);
    free(file->name);
    *file = (struct request_file){0};
}

void plan_files_destroy(struct plan_files *files)
{
    if (!files)
        return;
    for (int i = 0; files->file && i < FILES_KNOWN; i++)
        file_forget(files, &files->file[i]);
    free(files->file);
    pthread_mutex_destroy(&files->lock);
    free(files);
}

/* The part of an inode number that says what the file means. */
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

/* A place for another file: free, or of the file that was least recently asked for. The first places are those of other
 * users, who can push out none of the owner's. */
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
    file_forget(files, oldest);
    return oldest;
}

static bool drop_content(struct plan_files *files, const struct request_file *but)
{
    struct request_file *oldest = NULL;
    for (int i = 0; files->file && i < FILES_KNOWN; i++) {
        struct request_file *f = &files->file[i];
        if (content_there(&f->content) && f != but && (!oldest || f->used < oldest->used))
            oldest = f;
    }
    if (!oldest)
        return false;
    files->bytes -= content_bytes(&oldest->content);
    content_put(&oldest->content);
    return true;
}

bool plan_files_drop(struct plan_files *files)
{
    pthread_mutex_lock(&files->lock);
    bool dropped = drop_content(files, NULL);
    pthread_mutex_unlock(&files->lock);
    return dropped;
}

/* Zeros for those that never change: making them for the first time takes long. */
static struct digest list_of(struct control *control, const char *name)
{
    struct samples *list = !name || samples_built_in(name) ? NULL : samples_table_find(control->samples, name);
    struct digest digest = list ? *samples_digest(list) : (struct digest){0};
    samples_put(list);
    return digest;
}

static struct digest costs_of(struct control *control, const char *name)
{
    struct samples *list = name ? samples_table_costs(control->samples, name) : NULL;
    struct digest digest = list ? *samples_digest(list) : (struct digest){0};
    samples_put(list);
    return digest;
}

/* What a name means now: sets meaning and layout. */
static int find_meaning(struct control *control, const char *name, struct request_file *file, struct str *why)
{
    CLEANUP_FREE char *text = strdup(name);
    struct plan_request wanted;
    int error = text ? content_parse(control, text, &wanted, why) : -ENOMEM;
    if (!error && !wanted.pinned)
        error = world_view_await(control, NULL, why);
    if (error)
        return error;
    file->layout = plan_layout(control, &wanted);
    const struct digest parts[] = {file->layout, list_of(control, wanted.samples), list_of(control, wanted.without),
                                   costs_of(control, wanted.cost), hash128(name, strlen(name), 0)};
    file->meaning = hash128(parts, sizeof parts, 0);
    return 0;
}

/* With the lock. */
static struct request_file *file_enter(struct control *control, bool other, const char *name,
                                       const struct request_file *meant)
{
    struct plan_files *files = control->files;
    uint64_t ino = ino_of(control, &meant->meaning, ++files->entered);
    struct request_file *file = file_find(files, ino);
    if (file) /* once in years: another meaning of the same number */
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
    pthread_mutex_lock(&control->files->lock);
    struct request_file *file = file_enter(control, !control_is_owner(control, fuse_req_ctx(req)->uid), name, &meant);
    if (file) {
        file->used = ++control->files->asked;
        entry->ino = file->ino;
        entry->attr_timeout = file->made ? FOREVER : 0;
        entry_stat_file(control, file->ino, (off_t)file->size, &entry->attr);
    }
    pthread_mutex_unlock(&control->files->lock);
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

/* What is known of a file. */
struct known_file {
    char *name;
    struct plan_origin origin; /* its key only when it was made */
    bool made;
    off_t size;
    struct file_content content; /* references, or none: to be made */
};

static void known_fini(struct known_file *known)
{
    free(known->name);
    content_put(&known->content);
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

/* What the server before had made. */
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
        log_limited(LOG_LEVEL_WARNING, 1, "note a file of plan/ in %s: %s", path ? path : "the state directory",
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
        *known = (struct known_file){.name = strdup(file->name),
                                     .origin = {file->layout, file->key},
                                     .made = file->made,
                                     .size = (off_t)file->size,
                                     .content = content_get(&file->content)};
        error = known->name ? 0 : -ENOMEM;
    }
    pthread_mutex_unlock(&files->lock);
    return error;
}

/* The size stays what it is, also when others push out the content. */
static int file_remember(struct plan_files *files, uint64_t ino, const struct plan_origin *origin,
                         const struct file_content *content)
{
    pthread_mutex_lock(&files->lock);
    struct request_file *file = file_find(files, ino);
    if (file) {
        file->made = true;
        file->layout = origin->layout;
        file->key = origin->key;
        file->size = content_length(content);
        if (!content_there(&file->content)) {
            file->content = content_get(content);
            files->bytes += content_bytes(content);
        }
        while (files->bytes > files->most && drop_content(files, file))
            ;
    }
    pthread_mutex_unlock(&files->lock);
    return file ? 0 : -ESTALE;
}

/* Again: of the same, or not at all, for a list of the name may be another one by now. */
static int make_known(struct request_job *job, struct known_file *known)
{
    struct control *control = fuse_req_userdata(job->req);
    CLEANUP_STR struct str why = STR_INIT;
    struct plan_origin origin = {.layout = known->origin.layout};
    int error = content_make(job, known->name, &origin, &known->content, &why);
    if (!error && known->made && memcmp(&origin.key, &known->origin.key, sizeof origin.key) != 0) {
        str_adds(&why, "the sample list is another one than when the file was opened");
        error = -ESTALE;
    }
    if (error)
        refuse_file(job->req, known->name, error, &why);
    else
        error = file_remember(control->files, job->ino, &origin, &known->content);
    if (!error && !known->made && control_is_owner(control, fuse_req_ctx(job->req)->uid))
        file_note(control, job->ino);
    known->size = error ? 0 : (off_t)content_length(&known->content);
    return error;
}

/* A stream's bytes may be there already; else a worker waits for them. */
static void run_stream_read(struct request_job *job);
static void read_stream(fuse_req_t req, const struct request_job *job, const struct known_file *known)
{
    if (stream_read_now(req, known->content.stream, job))
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
        if (known->content.stream)
            read_stream(req, job, known);
        else
            control_reply_part(req, known->content.text, job->size, job->offset);
        break;
    }
}

/* Somebody may have made it meanwhile. */
static void run_stream_read(struct request_job *job)
{
    struct known_file known;
    int error = file_recall(control_of(job->req)->files, job->ino, &known);
    if (!error && !known.content.stream)
        error = make_known(job, &known);
    if (error)
        fuse_reply_err(job->req, -error);
    else
        stream_read_wait(job, known.content.stream);
    known_fini(&known);
}

static void run_file_job(struct request_job *job)
{
    struct known_file known;
    int error = file_recall(control_of(job->req)->files, job->ino, &known);
    if (error == -ESTALE && control_filled(control_of(job->req)) &&
        file_find_again(control_of(job->req), job->ino) == 0)
        error = file_recall(control_of(job->req)->files, job->ino, &known);
    if (!error && !content_there(&known.content))
        error = make_known(job, &known);
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
    else if (operation == FILE_READ ? content_there(&known.content) : known.made)
        reply_known(req, &job, &known);
    else
        job_defer(req, &job, known.name);
    known_fini(&known);
}
