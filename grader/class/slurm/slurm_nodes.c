#include "grader/class/slurm/slurm_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"

/* A node by its name, which is added when it is new; NULL: no name. */
static enum status find(struct slurm_nodes *nodes, const char *name, struct slurm_node **node,
                        struct error *error) {
    *node = NULL;
    for (size_t i = 0; i < nodes->count; i++) {
        if (strcmp(nodes->all[i].name, name) == 0) {
            *node = &nodes->all[i];
            return STATUS_OK;
        }
    }
    if (name[0] == '\0' || strlen(name) >= NODES_NAME) {
        return STATUS_OK;
    }
    if (!array_grow(&nodes->all, &nodes->capacity, nodes->count + 1, sizeof *nodes->all)) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the nodes");
    }
    *node = &nodes->all[nodes->count++];
    **node = (struct slurm_node){0};
    snprintf((*node)->name, sizeof(*node)->name, "%s", name);
    return STATUS_OK;
}

enum status slurm_nodes_end(struct slurm_nodes *nodes, const char *name, unsigned id, bool failed,
                            struct error *error) {
    struct slurm_node *node;
    TRY(find(nodes, name, &node, error));
    if (node == NULL) {
        return STATUS_OK;
    }
    if (!failed) {
        node->failures = 0;
        node->several = false;
        node->works = true;
        return STATUS_OK;
    }
    node->first = node->failures == 0 ? id : node->first;
    node->several |= node->first != id;
    node->works = false;
    node->failures++;
    return STATUS_OK;
}

enum status slurm_nodes_run(struct slurm_nodes *nodes, const char *name, double seconds,
                            struct error *error) {
    struct slurm_node *node;
    TRY(find(nodes, name, &node, error));
    if (node != NULL && seconds >= NODES_WORK_S) {
        node->works = true;
    }
    return STATUS_OK;
}

static bool another_works(const struct slurm_nodes *nodes, const struct slurm_node *node) {
    for (size_t i = 0; i < nodes->count; i++) {
        if (&nodes->all[i] != node && nodes->all[i].works && !nodes->all[i].excluded) {
            return true;
        }
    }
    return false;
}

const struct slurm_node *slurm_nodes_exclude(struct slurm_nodes *nodes) {
    for (size_t i = 0; i < nodes->count; i++) {
        struct slurm_node *node = &nodes->all[i];
        if (!node->excluded && node->several && node->failures >= NODES_FAILURES &&
            another_works(nodes, node)) {
            node->excluded = true;
            return node;
        }
    }
    return NULL;
}

size_t slurm_nodes_list(const struct slurm_nodes *nodes, const char *also, char text[NODES_LIST]) {
    size_t count = 0;
    size_t used = (size_t)snprintf(text, NODES_LIST, "%.1023s", also != NULL ? also : "");
    for (size_t i = 0; i < nodes->count; i++) {
        const struct slurm_node *node = &nodes->all[i];
        if (node->excluded && used + strlen(node->name) + 2 < NODES_LIST) {
            used += (size_t)snprintf(text + used, NODES_LIST - used, "%s%s", used > 0 ? "," : "",
                                     node->name);
            count++;
        }
    }
    return count;
}

void slurm_nodes_free(struct slurm_nodes *nodes) {
    free(nodes->all);
    *nodes = (struct slurm_nodes){0};
}
