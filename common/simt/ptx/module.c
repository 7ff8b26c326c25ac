/* What stands outside of functions: header, variables, sections. */
#include <string.h>

#include "common/simt/ptx/parser.h"

/* .version 9.0 */
static bool parse_version(struct ptx_parser *parser) {
    struct ptx_token *token = &parser->token;
    const char *dot =
        token->kind == PTX_TOKEN_NUMBER ? memchr(token->text, '.', token->length) : NULL;
    if (dot == NULL) {
        return ptx_fail_expected(parser, "a version");
    }
    size_t before = (size_t)(dot - token->text);
    struct ptx_number major, minor;
    if (!ptx_number_read(token->text, before, &major) ||
        !ptx_number_read(dot + 1, token->length - before - 1, &minor) || major.bits > 99 ||
        minor.bits > 99) {
        return ptx_fail_expected(parser, "a version");
    }
    parser->module->version_major = (unsigned)major.bits;
    parser->module->version_minor = (unsigned)minor.bits;
    return ptx_advance(parser);
}

/* .target sm_75, debug */
static bool parse_target(struct ptx_parser *parser) {
    bool more;
    PTX_TRY(ptx_read_name(parser, &parser->module->target) && ptx_skip_mark(parser, ',', &more));
    while (more) {
        char *option;
        PTX_TRY(ptx_read_name(parser, &option) && ptx_skip_mark(parser, ',', &more));
    }
    return true;
}

static bool parse_address_size(struct ptx_parser *parser) {
    uint64_t size;
    PTX_TRY(ptx_read_integer(parser, 64, &size));
    return size == 64 ||
           ptx_fail(parser, STATUS_UNSUPPORTED, "addresses of %u bits, not 64", (unsigned)size);
}

/* .section NAME { ... }: debug information, not for us. */
static bool skip_section(struct ptx_parser *parser) {
    while (!ptx_at_mark(parser, '{')) {
        if (parser->token.kind == PTX_TOKEN_END) {
            return ptx_fail_expected(parser, "'{'");
        }
        PTX_TRY(ptx_advance(parser));
    }
    size_t depth = 0;
    do {
        if (parser->token.kind == PTX_TOKEN_END) {
            return ptx_fail_expected(parser, "'}'");
        }
        depth += ptx_at_mark(parser, '{');
        depth -= ptx_at_mark(parser, '}');
        PTX_TRY(ptx_advance(parser));
    } while (depth > 0);
    return true;
}

struct directive {
    const char *word;
    bool (*parse)(struct ptx_parser *parser);
};

/* Those that are stepped over before their function is called. */
static const struct directive directives[] = {
    {".version", parse_version},
    {".target", parse_target},
    {".address_size", parse_address_size},
    {".file", ptx_parse_file},
    {".loc", ptx_parse_loc},
    {".section", skip_section},
    {".pragma", ptx_skip_statement},
    {".alias", ptx_parse_alias},
};

/* Words of linkage; .common is what several files may define. */
static const struct {
    const char *word;
    enum ptx_linkage linkage;
} linkages[] = {{".visible", PTX_LINKAGE_VISIBLE},
                {".extern", PTX_LINKAGE_EXTERN},
                {".weak", PTX_LINKAGE_WEAK},
                {".common", PTX_LINKAGE_WEAK}};

static bool find_linkage(const struct ptx_parser *parser, enum ptx_linkage *linkage) {
    for (size_t i = 0; i < sizeof linkages / sizeof *linkages; i++) {
        if (ptx_at_word(parser, linkages[i].word)) {
            *linkage = linkages[i].linkage;
            return true;
        }
    }
    return false;
}

/* A variable or a function, with the directives before it. */
static bool parse_definition(struct ptx_parser *parser) {
    enum ptx_linkage linkage = PTX_LINKAGE_LOCAL;
    while (find_linkage(parser, &linkage)) {
        PTX_TRY(ptx_advance(parser));
    }
    if (ptx_at_word(parser, ".entry") || ptx_at_word(parser, ".func")) {
        return ptx_parse_function(parser, linkage);
    }
    if (ptx_at_space(parser)) {
        return ptx_parse_variables(parser, linkage);
    }
    return ptx_fail_expected(parser, "a directive, a variable or a function");
}

static bool parse_top(struct ptx_parser *parser) {
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++) {
        if (ptx_at_word(parser, directives[i].word)) {
            return ptx_advance(parser) && directives[i].parse(parser);
        }
    }
    return parse_definition(parser);
}

bool ptx_parse_module(struct ptx_parser *parser) {
    PTX_TRY(ptx_advance(parser));
    if (!ptx_at_word(parser, ".version")) {
        return ptx_fail_expected(parser, "'.version'");
    }
    while (parser->token.kind != PTX_TOKEN_END) {
        PTX_TRY(parse_top(parser));
    }
    return parser->module->target != NULL || ptx_fail_expected(parser, "'.target'");
}
