/* Makes the payload of another node the answer of a read. Values are checked. Compressed ones are unpacked; raw ones
 * stay in the slot. */
#ifndef FS_WORLD_RECEIVE_H
#define FS_WORLD_RECEIVE_H

#include "fs/store/value.h"
#include "fs/world/self.h"

/* Fill in a question for the values of a span: file, value, count, and in flags the blocks that may be left out. */
void receive_ask(const struct catalog *catalog, const struct span *span, struct ring_message *message);
/* the part of this value that the span needs */
struct value_part receive_part(const struct catalog *catalog, const struct span *span, uint64_t value);

/* 0; -EBADMSG: verification failed; -ENOMEM: the answer is empty. `in_slot`: the answer points into the slot. */
int receive_payload(const struct self *self, const void *slot, uint32_t length, struct store_read *read, bool *in_slot);

#endif
