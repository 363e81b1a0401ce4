#include "fs/world/talk.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 512 };

bool talk_is_over(const struct talk *t)
{
    struct pollfd courier = {.fd = t->courier};
    return atomic_load(&t->stop) || (t->living && link_is_broken(&t->living->link)) ||
           (poll(&courier, 1, 0) == 1 && courier.revents & POLLHUP);
}

int talk_refuse(int courier, int error, const char *format, ...)
{
    char words[sizeof(uint32_t) + WORDS], *text = words + sizeof(uint32_t);
    uint32_t number = (uint32_t)-error;
    va_list args;
    va_start(args, format);
    memcpy(words, &number, sizeof number);
    vsnprintf(text, WORDS, format, args);
    va_end(args);
    log_warning("a courier was refused: %s", text);
    message_send(courier, MESSAGE_REFUSED, words, sizeof number + strlen(text), NULL);
    return -ECANCELED;
}

void talk_hang_up(struct talk *t, const char *why)
{
    bool live = t->state == TALK_LIVE;
    if (live)
        membership_leave(t->membership);
    if (t->living) {
        link_stop(&t->living->link);
        living_put(t->living);
        t->living = NULL;
    }
    layout_close(steal_pointer(t->computed));
    if (live && !atomic_load(&t->stop))
        log_warning("%s: what other nodes keep is read from the source until they are joined again", why);
    if (t->courier >= 0)
        close(t->courier);
    t->courier = -1;
    t->state = TALK_NEW;
}
