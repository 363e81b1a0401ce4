/* What stands behind -o. */
#include "cli/mount/mount-options.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <string.h>

static int parse(struct mount_options *o, const char *list, struct str *why)
{
    options_init(o);
    str_clear(why);
    return options_parse(o, list, why);
}

static void test_refused(void)
{
    static const struct {
        const char *list, *says;
    } table[] = {
        {"bogus", "option bogus: unknown option"},
        {"bogus=1", "option bogus=1: unknown option"},
        {"ram=1G,bogus=1,ssd=/x", "option bogus=1: unknown option"},
        {"line\nbreak=1", "option line\\x0abreak=1: unknown option"},
        {"ram", "option ram: needs a value"},
        {"ram=", "option ram=: needs a value"},
        {"ram=lots", "option ram=lots: must be a size, such as 512M, 10G or 25%"},
        {"ram=-1", "option ram=-1: must be a size, such as 512M, 10G or 25%"},
        {"ram=101%", "option ram=101%: is too large"},
        {"ram=99999999999999999999", "option ram=99999999999999999999: is too large"},
        {"ssd=", "option ssd=: needs a value"},
        {"state", "option state: needs a value"},
        {"rescan=often", "option rescan=often: must be auto, names, always or never"},
        {"zstd=0", "option zstd=0: must be off or a level from 1 to 19"},
        {"zstd=20", "option zstd=20: must be off or a level from 1 to 19"},
        {"identity=ctime", "option identity=ctime: must be mtime"},
        {"source_threads=0", "option source_threads=0: must be a number from 1 to 256"},
        {"source_threads=two", "option source_threads=two: must be a number from 1 to 256"},
        {"peer_timeout=0", "option peer_timeout=0: must be a time above zero, such as 5 or 0.5s"},
        {"peer_timeout=soon", "option peer_timeout=soon: must be a time above zero, such as 5 or 0.5s"},
        {"nodes=0", "option nodes=0: must be a number of nodes from 1 to 16384"},
        {"nodes=16385", "option nodes=16385: must be a number of nodes from 1 to 16384"},
        {"groups=0", "option groups=0: must be a number of groups from 1 to 64"},
        {"groups=two", "option groups=two: must be a number of groups from 1 to 64"},
        {"exchange=1", "option exchange=1: takes no value"},
        {"exchange_rate=1K", "option exchange_rate=1K: must be a size of at least 1M, such as 256M or 1G"},
        {"wait_join=1", "option wait_join=1: takes no value"},
        {"node=1", "option node=1: must be a node's number and the number of nodes on this host"},
        {"node=1/0", "option node=1/0: must be a node's number and the number of nodes on this host"},
        {"node=16384/1", "option node=16384/1: must be a node's number and the number of nodes on this host"},
        {"catalog=", "option catalog=: needs a value"},
        {"resize=15", "option resize=15: must be a number of pixels from 16 to 16384"},
        {"quality=101", "option quality=101: must be a number from 1 to 100"},
        {"allow_other=1", "option allow_other=1: takes no value"},
        {"noexec=1", "option noexec=1: takes no value"},
        {"remount", "option remount: a mount cannot be changed; unmount it and mount again"},
        {"Ram=1G", "option Ram=1G: unknown option. Did you mean `ram=`?"},
    };
    struct str why = STR_INIT;
    struct mount_options o;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        is_int(parse(&o, table[i].list, &why), -EINVAL, "%s is refused", table[i].list);
        is_str(why.length ? why.data : "", table[i].says, "and says why");
        options_fini(&o);
    }
    str_fini(&why);
}

static void test_ignored(void)
{
    static const char *const lists[] = {
        "",
        ",",
        ",,ro,,",
        "rw",
        "ro,nosuid,nodev,noatime",
        "_netdev,nofail,noauto,user,defaults",
        "x-systemd.automount,x-anything=1,X-mount.mkdir",
        "user=joe,comment=hello",
        "owner,group,users",
        "relatime,strictatime,lazytime,nodiratime",
    };
    struct mount_options o;
    struct str why = STR_INIT;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        is_int(parse(&o, lists[i], &why), 0, "'%s' is passed over", lists[i]);
        ok(!o.owner && !o.ram && !o.ssd && !o.allow_other && !o.no_exec, "and changes nothing");
        options_fini(&o);
    }
    str_fini(&why);
}

static void test_defaults(void)
{
    struct mount_options o;
    struct str why = STR_INIT;
    is_int(parse(&o, "", &why), 0, "none");
    ok(!o.ram && !o.ssd && !o.state && !o.owner && !o.allow_other && !o.no_exec && o.rescan == RESCAN_AUTO,
       "the defaults");
    ok(o.zstd_level > 0 && o.source_threads > 1 && o.peer_timeout > 0, "also the numbers");
    ok(!o.exchange && o.exchange_rate == 0, "nothing is set apart for moves");
    options_fini(&o);
    str_fini(&why);
}

static void test_taken(void)
{
    struct mount_options o;
    struct str why = STR_INIT;
    is_int(parse(&o,
                 "ram=25%,ssd=/s,ssd_size=1.5T,state=/st,control=/c,metrics_file=/"
                 "m.prom,owner=joe,rescan=never,identity=mtime,zstd=off,"
                 "source_threads=3,source_rate=2M,peer_timeout=0.5,allow_other,noexec,exchange,exchange_rate=2.5M",
                 &why),
           0, "all of them");
    is_str(o.ram, "25%", "ram");
    is_str(o.ssd, "/s", "ssd");
    is_str(o.ssd_size, "1.5T", "ssd_size");
    is_str(o.state, "/st", "state");
    is_str(o.control, "/c", "control");
    is_str(o.metrics_file, "/m.prom", "metrics_file");
    is_str(o.owner, "joe", "owner");
    is_int(o.rescan, RESCAN_NEVER, "rescan");
    ok(o.identity_mtime, "identity");
    is_int(o.zstd_level, 0, "zstd");
    is_int(o.source_threads, 3, "source_threads");
    is_uint(o.source_rate, 2 << 20, "source_rate");
    is_uint(o.peer_timeout, 500000000, "peer_timeout");
    ok(o.allow_other && o.no_exec && o.exchange, "flags");
    is_uint(o.exchange_rate, 5 << 19, "exchange_rate");
    is_int(options_check(&o, &why), 0, "they go together");

    is_int(options_parse(&o, "ram=1G,rescan=always", &why), 0, "another list");
    is_str(o.ram, "1G", "later ones win");
    is_int(o.rescan, RESCAN_ALWAYS, "all of them");
    is_str(o.ssd, "/s", "what it does not name stays");
    options_fini(&o);
    str_fini(&why);
}

static void test_values(void)
{
    struct mount_options o;
    struct str why = STR_INIT;
    is_int(parse(&o, "ssd=/a\\,b\\\\c\\d,ram=0", &why), 0, "a backslash keeps a comma");
    is_str(o.ssd, "/a,b\\c\\d", "in the value");
    is_str(o.ram, "0", "and the next option is the next");
    options_fini(&o);

    is_int(parse(&o, "metrics_file=/a=b", &why), 0, "a value with an equals sign");
    is_str(o.metrics_file, "/a=b", "is whole");
    options_fini(&o);
    str_fini(&why);
}

static void test_world(void)
{
    struct mount_options o;
    struct str why = STR_INIT;
    is_int(parse(&o, "nodes=16,groups=4,node=3/2,catalog=/c", &why), 0, "what worlds need");
    ok(o.nodes == 16 && o.groups == 4 && o.node == 3 && o.local == 2, "is there");
    is_str(o.catalog, "/c", "with the catalog");
    options_fini(&o);
    parse(&o, "ro", &why);
    ok(o.nodes == 0 && o.groups == 0 && o.node == 0 && o.local == 0 && !o.wait_join && !o.catalog, "and not without");
    options_fini(&o);
    str_fini(&why);
}

static void test_together(void)
{
    static const struct {
        const char *list, *says;
    } table[] = {
        {"wait_join,nodes=4",
         "options wait_join and nodes: cannot be combined: `dealfs join --nodes N` checks the world's size"},
        {"wait_join,catalog=/c", "options wait_join and catalog: cannot be combined"},
        {"ssd_size=1G", "option ssd_size=1G: needs ssd=DIR"},
        {"nodes=2,groups=3", "option groups=3: more groups than nodes (2)"},
    };
    struct str why = STR_INIT;
    struct mount_options o;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        is_int(parse(&o, table[i].list, &why), 0, "%s parses", table[i].list);
        is_int(options_check(&o, &why), -EINVAL, "but does not go together");
        is_str(why.data, table[i].says, "and says why");
        options_fini(&o);
    }
    parse(&o, "wait_join,groups=2", &why);
    is_int(options_check(&o, &why), 0, "wait_join and groups do");
    options_fini(&o);
    str_fini(&why);
}

int main(void)
{
    test_refused();
    test_ignored();
    test_defaults();
    test_taken();
    test_values();
    test_world();
    test_together();
    return done_testing();
}
