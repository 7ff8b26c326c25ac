/**
 * @file ptx.h
 * @brief PTX as data: the parser's output and the decoder's input.
 *
 * Source: NVIDIA, "Parallel Thread Execution ISA", version 9.0. One module is
 * the text that nvcc stored for one translation unit. Parsing keeps everything
 * the text says (an instruction's modifiers in order, the source line) and
 * decides nothing about execution.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_PTX_H_
#define WARPBOOK_COMMON_SIMT_PTX_PTX_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/base/status.h"

/** Types, with their sizes in bytes (a predicate has none). */
#define PTX_TYPE_LIST(X)       \
    X(PTX_B8, "b8", 1)         \
    X(PTX_B16, "b16", 2)       \
    X(PTX_B32, "b32", 4)       \
    X(PTX_B64, "b64", 8)       \
    X(PTX_B128, "b128", 16)    \
    X(PTX_U8, "u8", 1)         \
    X(PTX_U16, "u16", 2)       \
    X(PTX_U32, "u32", 4)       \
    X(PTX_U64, "u64", 8)       \
    X(PTX_S8, "s8", 1)         \
    X(PTX_S16, "s16", 2)       \
    X(PTX_S32, "s32", 4)       \
    X(PTX_S64, "s64", 8)       \
    X(PTX_F16, "f16", 2)       \
    X(PTX_F16X2, "f16x2", 4)   \
    X(PTX_BF16, "bf16", 2)     \
    X(PTX_BF16X2, "bf16x2", 4) \
    X(PTX_TF32, "tf32", 4)     \
    X(PTX_F32, "f32", 4)       \
    X(PTX_F64, "f64", 8)       \
    X(PTX_PRED, "pred", 0)

enum ptx_type {
    PTX_NO_TYPE,
#define PTX_ENUMERATOR(name, text, size) name,
    PTX_TYPE_LIST(PTX_ENUMERATOR)
#undef PTX_ENUMERATOR
};

/** @return size in bytes; 0 for PTX_NO_TYPE and PTX_PRED. */
size_t ptx_type_size(enum ptx_type type);

/** @return the type that @p text names (without the dot), or PTX_NO_TYPE. */
enum ptx_type ptx_type_find(const char *text, size_t length);

/** State spaces. */
enum ptx_space {
    PTX_REGISTER,
    PTX_CONST,
    PTX_GLOBAL,
    PTX_LOCAL,
    PTX_PARAM,
    PTX_SHARED,
    PTX_GENERIC
};

/** Who else may use a symbol of a module. */
enum ptx_linkage {
    PTX_LINKAGE_LOCAL,
    PTX_LINKAGE_EXTERN, /**< another module defines it, or the launch, or the system */
    PTX_LINKAGE_WEAK, /**< other modules may define it as well: one of them is as good as another */
    PTX_LINKAGE_VISIBLE
};

/**
 * A variable: global, constant, shared or local memory, or a parameter.
 *
 * Scalars have elements = 1. `.extern .shared x[]` has elements = 0: its size is
 * the dynamic shared memory of the launch.
 */
struct ptx_variable {
    char *name;
    enum ptx_space space;
    enum ptx_type type;
    size_t alignment; /**< bytes */
    size_t elements;
    size_t bytes;             /**< elements * size of the type */
    bool external;            /**< .extern */
    enum ptx_linkage linkage; /**< at module scope */
    bool managed;             /**< .attribute(.managed) */
    unsigned char
        *data; /**< initial bytes, `bytes` of them; NULL: zeros (or none, for parameters) */
    struct ptx_relocation *relocations; /**< addresses inside the initial bytes */
    size_t relocation_count;
    size_t offset; /**< parameters: from the start of the parameter block; set by the parser */
};

/** At data + offset, 8 bytes: the address of a symbol plus addend (generic when `generic(...)`). */
struct ptx_relocation {
    size_t offset;
    char *symbol;
    int64_t addend;
    bool generic;
};

/** A virtual register. Names like %r<23> are expanded: %r0 .. %r22. */
struct ptx_register {
    char *name;
    enum ptx_type type;
    uint32_t vector; /**< the first register of .v2 or .v4: how many there are; else 0 */
};

enum ptx_operand_kind {
    PTX_OPERAND_REGISTER,  /**< `index` into the function's registers; `negated`: !%p1 */
    PTX_OPERAND_IMMEDIATE, /**< `bits`: integer, or the bits of a float; see `immediate_type` */
    PTX_OPERAND_SPECIAL,   /**< `special`: %tid.x, %laneid, WARP_SZ, ... */
    PTX_OPERAND_SYMBOL,    /**< `symbol` + `offset`: a variable, a function or a label's name */
    PTX_OPERAND_ADDRESS,   /**< [register + offset] or [symbol + offset] or [offset]; what follows a
                                comma inside the brackets (coordinates) is in `elements` */
    PTX_OPERAND_VECTOR,    /**< {a, b, ...}: `elements`, `element_count` */
    PTX_OPERAND_PAIR,      /**< d|p: `elements[0]` is d, `elements[1]` is p */
    PTX_OPERAND_LABEL,     /**< `index`: instruction the label stands before; equal to
                                instruction_count for a label at the end of the body */
    PTX_OPERAND_DISCARD    /**< _ */
};

/** Where the variable that a symbol names is found. Names repeat: each call has a `param0`. */
enum ptx_table {
    PTX_IN_NONE, /**< a function, a call prototype or a branch table */
    PTX_IN_MODULE,
    PTX_IN_PARAMETERS,
    PTX_IN_RESULTS,
    PTX_IN_LOCALS
};

enum ptx_immediate_type { PTX_IMMEDIATE_INTEGER, PTX_IMMEDIATE_F32, PTX_IMMEDIATE_F64 };

struct ptx_operand {
    enum ptx_operand_kind kind;
    bool negated;      /**< register: "!" before a predicate; "-" before another */
    bool has_register; /**< address: `index` is the base register */
    uint32_t index;    /**< register or instruction */
    uint64_t bits;     /**< immediate; integers sign-extended to 64 bits */
    enum ptx_immediate_type immediate_type;
    char *symbol;  /**< symbol, address, label: name, or NULL */
    char *special; /**< special register's name without the %: "tid.x"; register: the part that is
                        selected ("b0", "h1"), or NULL */
    enum ptx_table table; /**< symbol, address: which table holds the variable... */
    uint32_t variable;    /**< ...and its index there; see ptx_operand_variable() */
    int64_t offset;       /**< symbol, address: byte offset */
    struct ptx_operand *elements;
    size_t element_count;
};

enum { PTX_MAX_MODIFIERS = 16 };

/** A place in the source, from .loc. */
struct ptx_location {
    uint32_t file, line;
    const struct ptx_location *caller; /**< where the function was inlined; NULL: it was not */
};

/**
 * One instruction.
 *
 * A call always has at least three operands: a vector of results (maybe empty),
 * the function (symbol or register), a vector of arguments (maybe empty), and
 * for a call through a register the symbol of its prototype.
 */
struct ptx_instruction {
    char *opcode;     /**< whole: "ld.global.v4.f32" */
    const char *base; /**< "ld"; points to a string of its own, NUL-terminated */
    const char *modifiers[PTX_MAX_MODIFIERS]; /**< "global", "v4", "f32"; NUL-terminated */
    size_t modifier_count;
    bool guarded; /**< @%p or @!%p */
    bool guard_negated;
    uint32_t guard;               /**< register index of the predicate */
    struct ptx_operand *operands; /**< in the order of the text; destinations first */
    size_t operand_count;
    char **targets; /**< brx.idx: labels of the branch table, else NULL */
    uint32_t *target_indices;
    size_t target_count;
    uint32_t file, line;                 /**< from .loc; 0: not known. file may have no name */
    const struct ptx_location *location; /**< the same with its callers; NULL: not known */
    uint32_t text_line;                  /**< line of the PTX text, from 1 */
};

/** @return true when two names are equal; most differ in the first character. */
static inline bool ptx_is_same(const char *a, const char *b) {
    return a[0] == b[0] && strcmp(a, b) == 0;
}

/** @return true when one of the instruction's modifiers is @p name. */
bool ptx_has_modifier(const struct ptx_instruction *instruction, const char *name);

/** @return true when one of them is one of @p names, which NULL ends. */
bool ptx_has_any_modifier(const struct ptx_instruction *instruction, const char *const *names);

/** @return true when @p text is one of @p names, which NULL ends. */
bool ptx_is_one_of(const char *text, const char *const *names);

/** @return the n-th modifier that is a type (0 = first), or PTX_NO_TYPE. */
enum ptx_type ptx_modifier_type(const struct ptx_instruction *instruction, size_t n);

struct ptx_function {
    char *name;
    bool entry;    /**< .entry: a kernel */
    bool external; /**< declared only: vprintf, malloc, __assertfail, ... */
    enum ptx_linkage linkage;
    struct ptx_variable *parameters;
    size_t parameter_count;
    size_t parameter_bytes;       /**< size of the parameter block */
    struct ptx_variable *results; /**< of a .func */
    size_t result_count;
    struct ptx_register *registers;
    size_t register_count;
    struct ptx_variable
        *locals; /**< .local, .shared, and .param inside the body (call sequences) */
    size_t local_count;
    struct ptx_instruction *instructions;
    size_t instruction_count;
    uint32_t max_threads[3];         /**< .maxntid; 0: not said */
    uint32_t required_threads[3];    /**< .reqntid; 0: not said */
    uint32_t cluster[3];             /**< .reqnctapercluster; 0: not said */
    uint32_t min_blocks;             /**< .minnctapersm; 0: not said */
    uint32_t max_registers;          /**< .maxnreg; 0: not said */
    const struct ptx_unread *unread; /**< where the body stands that is not read yet; else NULL */
};

struct ptx_module {
    char *target; /**< "sm_75" */
    unsigned version_major, version_minor;
    struct ptx_variable *variables; /**< module scope */
    size_t variable_count;
    struct ptx_function *functions;
    size_t function_count;
    char **files; /**< by .file number; NULL where there is none */
    size_t file_count;
    void *memory;              /**< owns everything above */
    struct ptx_parser *parser; /**< reads late bodies; NULL: there are none */
    char *text;                /**< what it reads, if ptx_free() is to free it; else NULL */
};

/** A line of a file. */
struct ptx_place {
    const char *file; /**< as the compiler had it, without the folder of a Bazel sandbox; lives with
                           the module */
    uint32_t line;
};

/**
 * @brief Finds the line of the program that an instruction was made of, and where the functions
 * that were inlined there were called.
 *
 * What was inlined from the toolkit's headers (atomicAdd() and its like) counts as the line that
 * called it.
 *
 * @param places receives at most @p most places: the line, its call, the call of that caller, ...
 * @return how many it received; 0: not known
 */
size_t ptx_source_lines(const struct ptx_module *module, const struct ptx_instruction *instruction,
                        struct ptx_place *places, size_t most);

/**
 * @brief The first of ptx_source_lines() alone.
 *
 * @param line receives the line's number
 * @return the file's name as the compiler had it, without the folder of a Bazel sandbox; lives with
 *         the module. NULL: not known
 */
const char *ptx_source_line(const struct ptx_module *module,
                            const struct ptx_instruction *instruction, uint32_t *line);

/**
 * @brief Parses the text of a module.
 * @param text  @p size bytes; need not end with NUL
 * @param error names the line of the PTX text and what was not understood
 * @return STATUS_OK, STATUS_BAD_FORMAT, STATUS_UNSUPPORTED, STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status ptx_parse(struct ptx_module **module, const char *text, size_t size,
                                 struct error *error);

/**
 * @brief As ptx_parse(), but steps over bodies of functions, which ptx_read_body() reads: a program
 * uses few of the kernels that it has.
 *
 * What is wrong in a body is said when it is read.
 *
 * @param text stays until ptx_free()
 */
MUST_CHECK enum status ptx_parse_late(struct ptx_module **module, const char *text, size_t size,
                                      struct error *error);

/** Reads the body of one of the module's functions unless that is done. @return as ptx_parse() */
MUST_CHECK enum status ptx_read_body(struct ptx_module *module, const struct ptx_function *function,
                                     struct error *error);

void ptx_free(struct ptx_module *module);

/**
 * @brief Makes one module of those that nvcc -rdc=true made of a program's files.
 *
 * What one declares .extern becomes what another defines. Symbols of one file alone keep to it,
 * under another name where two have the same.
 *
 * @param modules @p count of them, at least 1; they belong to the result, on failure to nobody
 * @param known   says of a function that no file defines whether the system has it
 * @return STATUS_OK; STATUS_BAD_FORMAT with a line that begins with the symbol: two files define
 *         it, or none does; STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status ptx_link(struct ptx_module **linked, struct ptx_module **modules,
                                size_t count, bool (*known)(const char *name), struct error *error);

/** @return the function, or NULL. */
const struct ptx_function *ptx_find_function(const struct ptx_module *module, const char *name);

/** @return the variable that @p operand (of @p function) names, or NULL. */
const struct ptx_variable *ptx_operand_variable(const struct ptx_module *module,
                                                const struct ptx_function *function,
                                                const struct ptx_operand *operand);

#endif
