/* Whether the running server serves, and when a server last did. Its watch reports a beat only several times per
 * second, and a server may die before: answered requests of the data mount count as well. */
#ifndef FS_KEEPER_SERVICE_H
#define FS_KEEPER_SERVICE_H

#include <stdint.h>

struct handover;
struct service {
    struct handover *handover;
    uint64_t young;    /* nanoseconds: a server that has beaten for less, without an answer, was not viable */
    uint64_t before;   /* answers of earlier servers */
    uint64_t answered; /* answers at the last look */
    uint64_t lived_at; /* when a viable server was last seen: nanoseconds, monotonic */
};

void service_init(struct service *service, struct handover *handover, uint64_t young);
/* Call it when a server starts or was adopted. */
void service_begin(struct service *service);
/* Beats and answers of the running server: grows while it serves. 0: it does not serve yet. */
uint64_t service_progress(const struct service *service);
/* Call it several times per second while a server runs, and when it has died. */
void service_look(struct service *service);

#endif
