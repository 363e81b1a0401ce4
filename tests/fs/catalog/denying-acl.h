/* A POSIX ACL as Linux stores it, which denies everything to user 1. So a catalog's mode has no rights for others. */
#ifndef TESTS_FS_CATALOG_DENYING_ACL_H
#define TESTS_FS_CATALOG_DENYING_ACL_H

#include <stdint.h>

/* version 2; tag, rights, id: owner, user 1, group, mask, others */
static const struct {
    uint32_t version;
    struct {
        uint16_t tag, rights;
        uint32_t id;
    } entry[5];
} denying_acl = {2, {{1, 6, UINT32_MAX}, {2, 0, 1}, {4, 4, UINT32_MAX}, {16, 4, UINT32_MAX}, {32, 4, UINT32_MAX}}};

#endif
