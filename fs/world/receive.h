/* What another node has sent becomes the answer of a read: its values are checked, decompressed where they are packed,
 * and else given on as they lie in the slot. */
#ifndef FS_WORLD_RECEIVE_H
#define FS_WORLD_RECEIVE_H

#include "fs/store/value.h"
#include "fs/world/self.h"

/* Ask for the values that a span touches: file, value, count, and in flags which blocks need not come. */
void receive_ask(const struct catalog *catalog, const struct span *span, struct ring_message *message);
struct value_part receive_part(const struct catalog *catalog, const struct span *span, uint64_t value); /* of it */

/* 0; -EBADMSG: it does not verify; -ENOMEM: then the answer is empty. `in_slot`: the answer points into the slot. */
int receive_payload(const struct self *self, const void *slot, uint32_t length, struct store_read *read, bool *in_slot);

#endif
