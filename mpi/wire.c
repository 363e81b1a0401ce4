/* Checks messages between couriers. Each kind may use only its own fields, so that a valid message has one meaning.
 * Numbers of files and values are checked by the server that is asked, which knows the catalog. */
#include "mpi/wire.h"

#include <errno.h>
#include <string.h>

enum { ERRNO_MOST = 4095 };

_Static_assert(offsetof(struct node_news, held) == sizeof(uint64_t) && sizeof(struct node_news) % sizeof(uint64_t) == 0,
               "news are words, the version first");

size_t wire_length(const struct wire_message *message)
{
    if (message->kind == WIRE_NEWS)
        return WIRE_SHORT + sizeof message->news;
    bool many = message->kind == WIRE_FETCH && message->flags == FETCH_MANY && message->count <= MANY_MOST;
    return WIRE_SHORT + (many ? message->count * sizeof *message->part : 0);
}

static bool is_tag(uint32_t tag)
{
    return tag >= TAG_ANSWER && tag <= INT32_MAX;
}

static bool is_status(int32_t status)
{
    return status <= 0 && status >= -ERRNO_MOST;
}

/* Checks the fields of the message's kind. The caller compares the other fields with 0. */
static bool check_turn(const struct wire_message *m, struct wire_message *used)
{
    switch (m->kind) {
    case WIRE_TURN:
        used->k = m->k;
        used->turn = m->turn;
        return m->k > 0 && turn_is_sound(&m->turn);
    case WIRE_BEGIN:
        used->token = m->token;
        used->k = m->k;
        used->turn = m->turn;
        return m->k > 0 && turn_is_sound(&m->turn);
    case WIRE_READY:
        used->token = m->token;
        used->status = m->status;
        used->room = m->room;
        return is_status(m->status);
    case WIRE_COMPUTED:
        used->token = m->token;
        used->status = m->status;
        used->layout = m->layout;
        return is_status(m->status);
    case WIRE_SETTLED:
        used->k = m->k;
        used->turn = m->turn;
        used->layout = m->layout;
        used->status = m->status;
        used->token = m->status ? m->token : 0;
        return is_status(m->status) && turn_is_sound(&m->turn);
    }
    return false;
}

static bool check_parts(const struct wire_message *m, struct wire_message *used)
{
    if (m->flags != FETCH_MANY)
        return true;
    memcpy(used->part, m->part, m->count * sizeof *m->part);
    return !m->file && !m->value && fetch_parts_are_sound(m->part, m->count);
}

static bool check_fields(const struct wire_message *m, struct wire_message *used)
{
    switch (m->kind) {
    case WIRE_FETCH:
        used->tag = m->tag;
        used->file = m->file;
        used->value = m->value;
        used->count = m->count;
        used->flags = m->flags;
        return is_tag(m->tag) && fetch_is_sound(m->flags, m->value, m->count) && check_parts(m, used);
    case WIRE_WAIT:
        used->tag = m->tag;
        return is_tag(m->tag);
    case WIRE_COMMAND:
        used->command = m->command;
        used->token = m->token;
        return m->command >= WORLD_STAGE && m->command <= WORLD_UMOUNT;
    case WIRE_NEWS:
        used->news = m->news;
        return true;
    case WIRE_GONE:
    case WIRE_QUIT:
    case WIRE_PING:
    case WIRE_PONG:
        return true;
    }
    return check_turn(m, used);
}

int wire_message_parse(const void *bytes, size_t n, struct wire_message *to)
{
    struct wire_message m = {0};
    if (n < WIRE_SHORT || n > WIRE_LONG)
        return -EBADMSG;
    memcpy(&m, bytes, n);
    if (m.magic != WIRE_MAGIC || wire_length(&m) != n)
        return -EBADMSG;
    struct wire_message used = {.magic = WIRE_MAGIC, .kind = m.kind};
    if (!check_fields(&m, &used) || memcmp(&m, &used, sizeof m) != 0)
        return -EBADMSG;
    *to = m;
    return 0;
}

int wire_rooms_check(const struct wire_rooms *r, size_t n, uint32_t nodes)
{
    bool right = n == sizeof *r + nodes * sizeof *r->room && r->magic == WIRE_MAGIC && r->nodes == nodes;
    return right ? 0 : -EBADMSG;
}

static bool is_failure(int64_t status)
{
    return status < 0 && status >= -ERRNO_MOST && status != -EAGAIN;
}

struct wire_failure wire_failure_make(int status)
{
    return (struct wire_failure){WIRE_MAGIC, is_failure(status) ? status : -EIO, 0};
}

int wire_failure_parse(const void *bytes, size_t n, int *status)
{
    struct wire_failure f;
    if (n != sizeof f)
        return -EBADMSG;
    memcpy(&f, bytes, sizeof f);
    if (f.magic != WIRE_MAGIC || !is_failure(f.status) || f.zero != 0)
        return -EBADMSG;
    *status = f.status;
    return 0;
}

/* The text ends within its field, only zeros follow it, and it has no control characters. */
static bool check_text(const char *text, size_t room)
{
    size_t n = strnlen(text, room);
    if (n == room)
        return false;
    for (size_t i = 0; i < room; i++)
        if (i < n ? (unsigned char)text[i] < 0x20 || text[i] == 0x7f : text[i] != 0)
            return false;
    return true;
}

static bool are_zeros(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

int wire_greeting_check(const struct wire_greeting *g)
{
    if (g->magic != WIRE_MAGIC || !check_text(g->release, sizeof g->release) || !check_text(g->host, sizeof g->host))
        return -EBADMSG;
    if (g->version != WIRE_VERSION)
        return -EPROTO;
    return are_zeros(g->zero, sizeof g->zero) ? 0 : -EBADMSG;
}

int wire_verdict_check(const struct wire_verdict *v)
{
    bool right = v->magic == WIRE_MAGIC && v->status <= 0 && v->status >= -ERRNO_MOST &&
                 check_text(v->why, sizeof v->why) && (v->why[0] != '\0') == (v->status != 0);
    return right ? 0 : -EBADMSG;
}

static bool is_id(const char id[NODE_ID])
{
    for (int i = 0; i < NODE_ID - 1; i++)
        if (!((id[i] >= '0' && id[i] <= '9') || (id[i] >= 'a' && id[i] <= 'f')))
            return false;
    return id[NODE_ID - 1] == '\0';
}

int wire_member_check(const struct wire_member *m)
{
    if (m->magic != WIRE_MAGIC || m->state > MEMBER_LIVE || m->scans > 1 || m->zero || m->nodes > NODES_MOST ||
        m->groups > NODES_MOST || (m->resize == 0) != (m->quality == 0) || m->quality > 100 ||
        !check_text(m->node.host, sizeof m->node.host))
        return -EBADMSG;
    bool named = m->state == MEMBER_UNMOUNTED ? are_zeros((const uint8_t *)m->node.id, NODE_ID) : is_id(m->node.id);
    return named ? 0 : -EBADMSG;
}

int wire_bell_check(const struct wire_bell *b)
{
    if (b->magic != WIRE_MAGIC || b->addresses > BELL_ADDRESSES)
        return -EBADMSG;
    for (int i = 0; i < b->addresses; i++)
        if (b->address[i].prefix > 128 || !are_zeros(b->address[i].zero, sizeof b->address[i].zero))
            return -EBADMSG;
    return 0;
}

void wire_news_from(struct wire_news *to, const struct node_news *from)
{
    memcpy(to, (const char *)from + sizeof from->version, sizeof *to);
}

void wire_news_to(struct node_news *to, const struct wire_news *from)
{
    memcpy((char *)to + sizeof to->version, from, sizeof *from);
}
