/* What another node has sent becomes the answer of a read: its values are checked, decompressed where they are packed,
 * and else given on as they lie in the slot. */
#ifndef FS_WORLD_RECEIVE_H
#define FS_WORLD_RECEIVE_H

#include "fs/world/self.h"

/* The values that a span touches. */
void receive_values_of(const struct span *span, uint32_t *first, uint32_t *count);

/* 0; -EBADMSG: it does not verify; -ENOMEM: then the answer is empty. `in_slot`: the answer points into the slot. */
int receive_payload(const struct self *self, const void *slot, uint32_t length, struct store_read *read, bool *in_slot);

#endif
