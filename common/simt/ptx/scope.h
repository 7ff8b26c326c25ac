/**
 * @file scope.h
 * @brief What a name stands for where it is used: nested scopes, each with registers, variables
 *        and labels of its own.
 *
 * Registers and variables are declared before they are used, so one stack of
 * bindings is enough. Labels may come later: they are kept by (name, scope)
 * and looked up when the function ends.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_SCOPE_H_
#define WARPBOOK_COMMON_SIMT_PTX_SCOPE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/ptx/map.h"
#include "common/simt/ptx/memory.h"
#include "common/simt/ptx/ptx.h"

enum { PTX_MAX_DEPTH = 64 };

/** A name in a scope. */
struct ptx_binding {
    const char *name;
    enum ptx_table table; /**< PTX_IN_NONE: a register */
    uint32_t index;       /**< of the register, or in the table */
    uint32_t shadowed;    /**< binding of the same name further out, or PTX_NO_BINDING */
};

#define PTX_NO_BINDING UINT32_MAX

/** A label, or with `table` a table of branch targets that a label names. */
struct ptx_label {
    uint32_t instruction;
    uint32_t scope;
    bool has_table;
    size_t first_target, target_count; /**< among the module's branch targets */
};

struct ptx_scopes {
    struct ptx_list bindings; /**< of struct ptx_binding: a stack */
    struct ptx_map innermost; /**< name -> its innermost binding */
    struct ptx_list parents;  /**< of uint32_t: the scope around each scope that there ever was */
    struct ptx_list labels;   /**< of struct ptx_label, of all functions so far */
    struct ptx_map by_place;  /**< (name, scope) -> label */
    uint32_t depth;
    uint32_t open[PTX_MAX_DEPTH];        /**< scopes around the place at hand */
    size_t first_binding[PTX_MAX_DEPTH]; /**< where their bindings begin */
    size_t visible; /**< inside a function: how many of the module's bindings it can use */
};

enum ptx_declared { PTX_DECLARED, PTX_DECLARED_TWICE, PTX_DECLARED_NO_MEMORY };

/** Sets up the module's scope. @return false: out of memory */
bool ptx_scopes_create(struct ptx_scopes *scopes);

void ptx_scopes_free(struct ptx_scopes *scopes);

/** Opens a scope; the caller has checked that depth < PTX_MAX_DEPTH. @return false: no memory */
bool ptx_scopes_open(struct ptx_scopes *scopes);

/** Closes the innermost scope, which is not the module's. */
void ptx_scopes_close(struct ptx_scopes *scopes);

/** @return number of the innermost scope. */
uint32_t ptx_scopes_current(const struct ptx_scopes *scopes);

/** Binds a name (from ptx_names_keep()) in the innermost scope. */
enum ptx_declared ptx_scopes_bind(struct ptx_scopes *scopes, const char *name, enum ptx_table table,
                                  size_t index);

/** @return what the name stands for, valid until the next binding; NULL: not declared. */
const struct ptx_binding *ptx_scopes_find(const struct ptx_scopes *scopes, const char *name);

/** Puts a label before instruction number @p instruction. */
enum ptx_declared ptx_scopes_label(struct ptx_scopes *scopes, const char *name, size_t instruction);

/** @return the label of the innermost scope, or NULL. */
struct ptx_label *ptx_scopes_label_here(const struct ptx_scopes *scopes, const char *name);

/** @return the label as seen from a scope, which may be closed by now; NULL: there is none. */
const struct ptx_label *ptx_scopes_find_label(const struct ptx_scopes *scopes, const char *name,
                                              uint32_t scope);

#endif
