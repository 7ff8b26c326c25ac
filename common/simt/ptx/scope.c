#include "common/simt/ptx/scope.h"

/* Names are kept once, so their addresses tell them apart. */
static uint64_t key_of(const char *name) {
    return (uint64_t)(uintptr_t)name;
}

bool ptx_scopes_create(struct ptx_scopes *scopes) {
    *scopes = (struct ptx_scopes){
        .bindings.item_size = sizeof(struct ptx_binding),
        .parents.item_size = sizeof(uint32_t),
        .labels.item_size = sizeof(struct ptx_label),
        .visible = SIZE_MAX,
    };
    return ptx_scopes_open(scopes);
}

void ptx_scopes_free(struct ptx_scopes *scopes) {
    ptx_list_free(&scopes->bindings);
    ptx_list_free(&scopes->parents);
    ptx_list_free(&scopes->labels);
    ptx_map_free(&scopes->innermost);
    ptx_map_free(&scopes->by_place);
}

bool ptx_scopes_open(struct ptx_scopes *scopes) {
    uint32_t *parent = ptx_list_add(&scopes->parents);
    if (parent == NULL) {
        return false;
    }
    uint32_t number = (uint32_t)(scopes->parents.count - 1);
    *parent = scopes->depth > 0 ? ptx_scopes_current(scopes) : number;
    scopes->open[scopes->depth] = number;
    scopes->first_binding[scopes->depth] = scopes->bindings.count;
    scopes->depth++;
    return true;
}

void ptx_scopes_close(struct ptx_scopes *scopes) {
    size_t first = scopes->first_binding[--scopes->depth];
    while (scopes->bindings.count > first) {
        const struct ptx_binding *binding =
            ptx_list_at(&scopes->bindings, --scopes->bindings.count);
        *ptx_map_find(&scopes->innermost, key_of(binding->name), 0) = binding->shadowed;
    }
}

uint32_t ptx_scopes_current(const struct ptx_scopes *scopes) {
    return scopes->open[scopes->depth - 1];
}

enum ptx_declared ptx_scopes_bind(struct ptx_scopes *scopes, const char *name, enum ptx_table table,
                                  size_t index) {
    uint32_t number = (uint32_t)scopes->bindings.count;
    uint32_t *innermost = ptx_map_find(&scopes->innermost, key_of(name), 0);
    uint32_t shadowed = innermost != NULL ? *innermost : PTX_NO_BINDING;
    if (shadowed != PTX_NO_BINDING && shadowed >= scopes->first_binding[scopes->depth - 1]) {
        return PTX_DECLARED_TWICE;
    }
    struct ptx_binding *binding = ptx_list_add(&scopes->bindings);
    if (binding == NULL) {
        return PTX_DECLARED_NO_MEMORY;
    }
    *binding = (struct ptx_binding){name, table, (uint32_t)index, shadowed};
    if (innermost != NULL) {
        *innermost = number;
        return PTX_DECLARED;
    }
    if (ptx_map_add(&scopes->innermost, key_of(name), 0, number)) {
        return PTX_DECLARED;
    }
    scopes->bindings.count--; /* what is not in the map must not be closed */
    return PTX_DECLARED_NO_MEMORY;
}

/* A variable of the module that is declared behind the function at hand. */
static bool is_later(const struct ptx_scopes *scopes, uint32_t binding) {
    return scopes->depth > 1 && binding < scopes->first_binding[1] && binding >= scopes->visible;
}

const struct ptx_binding *ptx_scopes_find(const struct ptx_scopes *scopes, const char *name) {
    const uint32_t *innermost = ptx_map_find(&scopes->innermost, key_of(name), 0);
    return innermost != NULL && *innermost != PTX_NO_BINDING && !is_later(scopes, *innermost)
               ? ptx_list_at(&scopes->bindings, *innermost)
               : NULL;
}

enum ptx_declared ptx_scopes_label(struct ptx_scopes *scopes, const char *name,
                                   size_t instruction) {
    if (ptx_scopes_label_here(scopes, name) != NULL) {
        return PTX_DECLARED_TWICE;
    }
    uint32_t number = (uint32_t)scopes->labels.count;
    struct ptx_label *label = ptx_list_add(&scopes->labels);
    if (label == NULL ||
        !ptx_map_add(&scopes->by_place, key_of(name), ptx_scopes_current(scopes), number)) {
        return PTX_DECLARED_NO_MEMORY;
    }
    label->instruction = (uint32_t)instruction;
    label->scope = ptx_scopes_current(scopes);
    return PTX_DECLARED;
}

/* The label that was put into exactly this scope. */
static struct ptx_label *label_in(const struct ptx_scopes *scopes, const char *name,
                                  uint32_t scope) {
    const uint32_t *number = ptx_map_find(&scopes->by_place, key_of(name), scope);
    return number != NULL ? ptx_list_at(&scopes->labels, *number) : NULL;
}

struct ptx_label *ptx_scopes_label_here(const struct ptx_scopes *scopes, const char *name) {
    return label_in(scopes, name, ptx_scopes_current(scopes));
}

const struct ptx_label *ptx_scopes_find_label(const struct ptx_scopes *scopes, const char *name,
                                              uint32_t scope) {
    for (;;) {
        const struct ptx_label *label = label_in(scopes, name, scope);
        uint32_t parent = *(uint32_t *)ptx_list_at(&scopes->parents, scope);
        if (label != NULL || parent == scope) {
            return label;
        }
        scope = parent;
    }
}
