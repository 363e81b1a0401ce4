/* The yardstick of `make bench`: a FUSE server that does nothing but copy from memory.
 *
 *   bare MOUNTPOINT FILES SIZE THREADS [DISK | own]
 *
 * serves FILES files of SIZE bytes, named f0000000 and so on in one directory, with the options of the data mount (no
 * OPEN, no RELEASE, infinite timeouts, read-only, many background requests). What dealfs takes longer than this is the
 * price of its shards, checksums and request slots. It ends when it is unmounted.
 *
 * Every file has the same bytes, which stay in the processor's cache. With `own`, each has its own bytes in memory, as
 * in a RAM tier: the difference is what the memory costs.
 *
 * With DISK, a file on a disk, each READ is one pread of DISK with O_DIRECT: the SSD tier without shards, checksums and
 * slots. The files are one after the other in DISK, each at a multiple of 4 KiB. */
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE = 2 << 20, FIRST_FILE = 2 };
#define WHOLE_PAGES(n) (((n) + PAGE - 1) / PAGE * PAGE)

static const double for_ever = 3e8;
static unsigned long files;
static size_t size;
static char *content;
static size_t stride; /* from the bytes of a file to those of the next one */
static int disk = -1;
static struct fuse_session *session;

static struct stat attributes(fuse_ino_t ino)
{
    struct stat st = {.st_ino = ino, .st_blksize = 131072, .st_nlink = 1};
    if (ino == FUSE_ROOT_ID) {
        st.st_mode = S_IFDIR | 0555;
    } else {
        st.st_mode = S_IFREG | 0444;
        st.st_size = size;
        st.st_blocks = (size + 511) / 512;
    }
    return st;
}

static void bare_init(void *user, struct fuse_conn_info *conn)
{
    (void)user;
    conn->want &= ~(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | FUSE_CAP_AUTO_INVAL_DATA);
    conn->max_background = 4096;
    conn->congestion_threshold = 4096;
    conn->max_readahead = 1 << 20;
}

static void bare_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param e = {.attr_timeout = for_ever, .entry_timeout = for_ever};
    char *end = NULL;
    unsigned long number = name[0] == 'f' ? strtoul(name + 1, &end, 10) : files;
    if (parent == FUSE_ROOT_ID && number < files && *end == '\0') {
        e.ino = number + FIRST_FILE;
        e.attr = attributes(e.ino);
    }
    fuse_reply_entry(req, &e);
}

static void bare_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    struct stat st = attributes(ino);
    fuse_reply_attr(req, &st, for_ever);
}

static void bare_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    (void)fi;
    fuse_reply_err(req, ENOSYS);
}

/* A disk reads faster into memory in one piece. */
static char *huge_page(void)
{
    char *bytes = aligned_alloc(HUGE, HUGE);
    if (bytes)
        madvise(bytes, HUGE, MADV_HUGEPAGE);
    return bytes;
}

/* The kernel asks for whole pages: `from` and `n` are multiples of 4 KiB, except at the end of a file. */
static const char *read_disk(fuse_ino_t ino, size_t from, size_t n)
{
    static _Thread_local char *buffer;
    if (!buffer)
        buffer = huge_page();
    off_t at = (off_t)((ino - FIRST_FILE) * WHOLE_PAGES(size) + from);
    return buffer && n <= HUGE && pread(disk, buffer, WHOLE_PAGES(n), at) >= (ssize_t)n ? buffer : NULL;
}

static void bare_read(fuse_req_t req, fuse_ino_t ino, size_t n, off_t offset, struct fuse_file_info *fi)
{
    (void)fi;
    size_t from = (size_t)offset < size ? (size_t)offset : size;
    struct iovec iov = {content + (ino - FIRST_FILE) * stride + from, n < size - from ? n : size - from};
    if (disk >= 0 && iov.iov_len)
        iov.iov_base = (void *)read_disk(ino, from, iov.iov_len);
    if (iov.iov_base)
        fuse_reply_iov(req, &iov, 1);
    else
        fuse_reply_err(req, EIO);
}

static void bare_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg, struct fuse_file_info *fi,
                       unsigned flags, const void *in, size_t in_size, size_t out_size)
{
    (void)ino, (void)cmd, (void)arg, (void)fi, (void)flags, (void)in, (void)in_size, (void)out_size;
    fuse_reply_err(req, ENOTTY);
}

static const struct fuse_lowlevel_ops ops = {
    .init = bare_init,
    .lookup = bare_lookup,
    .getattr = bare_getattr,
    .open = bare_open,
    .opendir = bare_open,
    .read = bare_read,
    .ioctl = bare_ioctl,
};

static void *serve(void *unused)
{
    (void)unused;
    struct fuse_buf buf = {.mem = NULL};
    while (!fuse_session_exited(session)) {
        int n = fuse_session_receive_buf(session, &buf);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            break;
        fuse_session_process_buf(session, &buf);
    }
    free(buf.mem);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc > 6) {
        fprintf(stderr, "usage: bare MOUNTPOINT FILES SIZE THREADS [DISK | own]\n");
        return 2;
    }
    files = strtoul(argv[2], NULL, 10);
    size = strtoul(argv[3], NULL, 10);
    int threads = atoi(argv[4]);
    bool own = argc > 5 && strcmp(argv[5], "own") == 0;
    stride = own ? size : 0;
    content = aligned_alloc(HUGE, (size + (files - 1) * stride) / HUGE * HUGE + HUGE);
    if (!content || threads < 1 || threads > 64)
        return 2;
    madvise(content, size + (files - 1) * stride, MADV_HUGEPAGE);
    memset(content, 'b', size + (files - 1) * stride);
    if (argc > 5 && !own && (disk = open(argv[5], O_RDONLY | O_DIRECT | O_CLOEXEC)) < 0) {
        perror(argv[5]);
        return 1;
    }

    char *options[] = {argv[0], "-oro,default_permissions,fsname=bare"};
    struct fuse_args args = FUSE_ARGS_INIT(2, options);
    session = fuse_session_new(&args, &ops, sizeof ops, NULL);
    if (!session || fuse_session_mount(session, argv[1]) != 0)
        return 1;
    pthread_t thread[64];
    for (int i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, serve, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    fuse_session_unmount(session);
    fuse_session_destroy(session);
    free(content);
    return 0;
}
