/* Texts of the key `nodes` that are too long for a file name: the feeder reads a plan's lists as files. Its names have
 * nodes=@DIGEST instead, and the server has the texts: those of the last plans that were requested to be fed.
 *
 * Any thread. */
#ifndef FS_CONTROL_NODE_TEXTS_H
#define FS_CONTROL_NODE_TEXTS_H

#include "fs/base/hash.h"
#include "fs/wire/feed.h"

#include <pthread.h>

enum { NODE_TEXTS = FEED_PLANS };

struct node_texts {
    pthread_mutex_t lock; /* guards all fields below */
    struct node_text {
        struct digest digest;
        char *text; /* NULL: unused */
        uint64_t used;
    } at[NODE_TEXTS];
    uint64_t uses;
};

void node_texts_init(struct node_texts *texts);
void node_texts_fini(struct node_texts *texts);
int node_texts_keep(struct node_texts *texts, const char *text, struct digest *digest); /* 0 or -ENOMEM */
/* A copy of the pairs of a file name, with the text in place of nodes=@DIGEST. The caller frees it. NULL: no memory. An
 * unknown digest stays as it is, and is rejected as a node's name. */
char *node_texts_expand(struct node_texts *texts, const char *pairs);

#endif
