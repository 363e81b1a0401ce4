/* A message is its type, its length in four bytes, its payload and a newline (srun passes output on by lines). Before
 * the first message an agent sends a greeting, because a login shell may print something of its own. */
#include "cli/launch/channel.h"

#include "fs/base/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HEADER = 5, PIECE = 65536, OUTLET_FULL = 1 << 20, MESSAGE_MOST = 1 << 24 };
/* seconds; how often each end sends SAY_ALIVE in that time */
enum { PATIENCE_S = 30, SPEAKS = 6 };
static const char greeting[] = "\ndealfs-launch-agent " DEALFS_VERSION "\n";

/* --- bytes to be sent --- */

bool outlet_waits(const struct channel_out *o)
{
    return o->sent < o->data.length;
}

bool outlet_is_full(const struct channel_out *o)
{
    return o->data.length - o->sent > OUTLET_FULL;
}

/* A pipe that is ready takes PIPE_BUF bytes without blocking. */
int outlet_push(struct channel_out *o)
{
    size_t n = o->data.length - o->sent;
    ssize_t written = write(o->fd, o->data.data + o->sent, n < PIPE_BUF ? n : PIPE_BUF);
    if (written < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    o->sent += (size_t)written;
    if (o->sent == o->data.length || o->sent > OUTLET_FULL) {
        memmove(o->data.data, o->data.data + o->sent, o->data.length - o->sent);
        o->data.length -= o->sent;
        o->sent = 0;
    }
    return o->data.failed ? -ENOMEM : 0;
}

/* --- messages --- */

void channel_init(struct channel *c, int in, int out)
{
    uint64_t now = clock_now(), patience = clock_bound("DEALFS_LAUNCH_PATIENCE", PATIENCE_S);
    *c = (struct channel){.in = in, .out.fd = out, .ticked = now, .spoke = now, .patience = patience};
}

void channel_fini(struct channel *c)
{
    if (c->in >= 0)
        close(c->in);
    if (c->out.fd >= 0 && c->out.fd != c->in)
        close(c->out.fd);
    c->in = c->out.fd = -1;
    str_fini(&c->data);
    str_fini(&c->out.data);
}

void channel_greet(struct channel *c)
{
    c->greeted = true;
    str_adds(&c->out.data, greeting);
}

void channel_say(struct channel *c, enum channel_message type, const void *data, size_t n)
{
    const unsigned char header[HEADER] = {(unsigned char)type, (unsigned char)n, (unsigned char)(n >> 8),
                                          (unsigned char)(n >> 16), (unsigned char)(n >> 24)};
    str_add(&c->out.data, header, sizeof header);
    str_add(&c->out.data, data, n);
    str_add(&c->out.data, "\n", 1);
    c->spoke = clock_now();
}

void channel_sayf(struct channel *c, enum channel_message type, const char *format, ...)
{
    CLEANUP_STR struct str text = STR_INIT;
    va_list args;
    va_start(args, format);
    str_addv(&text, format, args);
    va_end(args);
    channel_say(c, type, text.data, text.length);
}

/* Time in which this process was suspended with its job does not count as silence. */
bool channel_tick(struct channel *c, bool listens)
{
    uint64_t now = clock_now(), passed = now - c->ticked;
    c->ticked = now;
    c->silence = listens ? c->silence + (passed < SECOND ? passed : SECOND) : 0;
    if (now - c->spoke >= c->patience / SPEAKS)
        channel_say(c, SAY_ALIVE, "", 0);
    return c->silence < c->patience;
}

int channel_read(struct channel *c)
{
    char *room;
    memmove(c->data.data, c->data.data + c->taken, c->data.length - c->taken);
    c->data.length -= c->taken;
    c->taken = 0;
    room = str_reserve(&c->data, PIECE);
    if (!room)
        return -ENOMEM;
    ssize_t n = read(c->in, room, PIECE);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    c->data.length += (size_t)n;
    c->ended |= n == 0;
    c->silence = 0;
    return 0;
}

static bool find_greeting(struct channel *c, struct str *noise)
{
    const char *at = memmem(c->data.data, c->data.length, greeting, sizeof greeting - 1);
    size_t before = at ? (size_t)(at - c->data.data) : c->ended ? c->data.length : 0;
    str_add(noise, c->data.data, before);
    c->taken = at ? before + sizeof greeting - 1 : before;
    return c->greeted = at != NULL;
}

int channel_take(struct channel *c, struct str *payload, struct str *noise)
{
    if (!c->data.length || (!c->greeted && !find_greeting(c, noise)))
        return 0;
    const unsigned char *at = (const unsigned char *)c->data.data + c->taken;
    size_t left = c->data.length - c->taken;
    if (left < HEADER)
        return 0;
    size_t n = at[1] | (size_t)at[2] << 8 | (size_t)at[3] << 16 | (size_t)at[4] << 24;
    if (n > MESSAGE_MOST)
        c->ended = true;
    if (n > MESSAGE_MOST || left < HEADER + n + 1)
        return 0;
    str_clear(payload);
    str_add(payload, at + HEADER, n);
    c->taken += HEADER + n + 1;
    return at[0];
}
