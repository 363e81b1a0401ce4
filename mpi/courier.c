#include "mpi/courier.h"

#include "fs/base/log.h"
#include "mpi/loop.h"

#include <stdio.h>

static int make_flight(struct courier *c)
{
    int error = post_create(&c->post);
    struct flight_config config = {
        .me = c->nodes.me,
        .nodes = c->nodes.count,
        .timeout = members_timeout(&c->members),
        .last_tag = c->last_tag,
        .home = &c->home,
        .post = c->post,
        .doorbell = c->doorbell,
        .spoil = &c->spoil,
    };
    if (!error)
        error = flight_create(&config, &c->flight);
    return agree_on(&c->nodes, error, NULL);
}

int courier_form(struct courier *c)
{
    int error = agree_begin(&c->nodes);
    if (error)
        return error;
    log_set_node((int)c->nodes.me);
    if (c->nodes.count > 1)
        snprintf(c->helper.name, sizeof c->helper.name, "%s", agree_name(&c->nodes, c->nodes.me));
    home_init(&c->home, c->arguments.state, c->nodes.count, c->nodes.world);
    c->members = (struct members){.arguments = &c->arguments, .nodes = &c->nodes, .home = &c->home};
    error = forming_begin(&c->members, &c->helper, &c->doorbell);
    if (!error)
        error = make_flight(c);
    if (!error)
        error = forming_live(&c->members);
    /* all nodes know: the command that mounts on all nodes unmounts where it had succeeded */
    if (error == -ECANCELED)
        helper_undo(&c->helper, c->arguments.mountpoint);
    helper_end(&c->helper);
    return error;
}

int courier_serve(struct courier *c)
{
    struct loop loop = {
        .home = &c->home, .post = c->post, .doorbell = c->doorbell, .flight = c->flight, .signals = c->signals};
    return loop_run(&loop);
}

void courier_end(struct courier *c, int error)
{
    if (!c->members.nodes) /* nothing was created */
        return;
    if (!courier_in_order(error)) {
        home_fini(&c->home);
        return;
    }
    if (c->post && post_sends(c->post) > 0) {
        home_hang_up(&c->home);
        return;
    }
    post_destroy(c->post);
    flight_destroy(c->flight);
    home_fini(&c->home);
    members_fini(&c->members);
    doorbell_destroy(c->doorbell);
    agree_end(&c->nodes);
}
