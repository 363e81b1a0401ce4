/* libFuzzer target: any bytes as messages between couriers. What is taken is what a courier would have made: it has its
 * own length, and only numbers that can be. Half of the inputs get the right magic number first. */
#include "mpi/wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_message(const uint8_t *bytes, size_t n)
{
    struct wire_message m;
    if (wire_message_parse(bytes, n, &m))
        return;
    if (wire_length(&m) != n || memcmp(&m, bytes, n) != 0)
        abort();
    bool stored = m.flags == FETCH_STORED; /* then value and count are of extents, not of a file's values */
    bool values = m.kind == WIRE_FETCH && m.flags != FETCH_BLOB;
    if (m.kind == WIRE_FETCH && m.count == 0)
        abort();
    if (values && m.count > (stored ? (uint32_t)STORED_MOST : RING_VALUES))
        abort();
    if (values && !stored && m.value + m.count < m.value)
        abort();
    if ((m.kind == WIRE_FETCH || m.kind == WIRE_WAIT) != (m.tag != 0) || m.tag > INT32_MAX)
        abort();
}

static void try_failure(const uint8_t *bytes, size_t n)
{
    int status;
    if (wire_failure_parse(bytes, n, &status) == 0 && (status >= 0 || wire_failure_make(status).status != status))
        abort();
}

#define TRY(type, check, then)                                                                                         \
    do {                                                                                                               \
        type it;                                                                                                       \
        if (n >= sizeof it) {                                                                                          \
            memcpy(&it, bytes, sizeof it);                                                                             \
            if (check(&it) == 0)                                                                                       \
                then;                                                                                                  \
        }                                                                                                              \
    } while (0)

static volatile size_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t magic = WIRE_MAGIC;
    if (size < 1)
        return 0;
    size_t n = size - 1;
    uint8_t *bytes = malloc(n + !n);
    memcpy(bytes, data + 1, n);
    if (data[0] & 1 && n >= sizeof magic)
        memcpy(bytes, &magic, sizeof magic);
    try_message(bytes, n);
    try_failure(bytes, n);
    TRY(struct wire_greeting, wire_greeting_check, sink += strlen(it.release) + strlen(it.host));
    TRY(struct wire_verdict, wire_verdict_check, sink += strlen(it.why));
    TRY(struct wire_member, wire_member_check, sink += strlen(it.node.id) + strlen(it.node.host));
    TRY(struct wire_bell, wire_bell_check, sink += it.address[it.addresses ? it.addresses - 1 : 0].prefix);
    free(bytes);
    return 0;
}
