#include "fs/world/talk.h"

#include "fs/base/cleanup.h"
#include "fs/base/halt.h"
#include "fs/base/log.h"
#include "fs/base/ready.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 512 };

bool talk_is_over(const struct talk *t)
{
    struct pollfd courier = {.fd = t->courier};
    return atomic_load(&t->stop) || (t->living && link_is_broken(&t->living->link)) ||
           (ready_wait(&courier, 1, 0) == 1 && courier.revents & POLLHUP);
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
    log_warning("the server rejected a courier: %s", text);
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
        log_warning("%s: the share of other nodes is read from the source until `dealfs join`", why);
    if (t->courier >= 0)
        close(t->courier);
    t->courier = -1;
    t->state = TALK_NEW;
}

int talk_say_layout(struct talk *t, enum message_kind kind, const void *payload, size_t n, const struct layout *layout)
{
    int fds[MESSAGE_FDS] = {-1, -1, -1, -1, -1};
    if (layout)
        fds[0] = layout_share(layout);
    if (layout && fds[0] < 0)
        log_warning("give the layout to later servers: %s", strerror(-fds[0]));
    int error = message_send(t->courier, kind, payload, n, fds);
    if (fds[0] >= 0)
        close(fds[0]);
    return error;
}

struct layout *talk_find_layout(const struct talk *t, int fd, const struct digest *digest)
{
    const struct self *self = t->self;
    struct layout *layout;
    if (fd >= 0 && layout_open_fd(fd, self->config.catalog, &layout) == 0) {
        if (layout_is(layout, digest))
            return layout;
        layout_close(layout);
    }
    return shelf_find(self->shelf, self->config.catalog, digest, &layout) ? NULL : layout;
}

/* If saving failed, the old file must not be taken for the new world. */
void talk_save(struct talk *t)
{
    struct self *self = t->self;
    struct world *w = membership_world(t->membership);
    int error = w ? shelf_keep(self->shelf, w->layout) : 0;
    if (!error && w && !(error = halt_fault("save-world")))
        error = world_save(self->config.state, w);
    if (error && w->last.k == 0)
        world_forget(self->config.state);
    world_put(w);
    int before = atomic_exchange(&self->unsaved, error);
    if (error && error != before)
        log_warning("the world cannot be saved in %s: %s", self->config.state, strerror(-error));
    else if (!error && before)
        log_info("the world is saved again in %s", self->config.state);
}
