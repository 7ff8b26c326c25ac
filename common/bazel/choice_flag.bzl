"""A flag with a fixed set of values."""

def _choice_flag_impl(ctx):
    value = ctx.build_setting_value
    if value not in ctx.attr.values:
        fail("--%s is %s, not '%s'" % (
            ctx.label,
            " or ".join(["'%s'" % allowed for allowed in ctx.attr.values]),
            value,
        ))
    return []

choice_flag = rule(
    implementation = _choice_flag_impl,
    build_setting = config.string(flag = True),
    attrs = {"values": attr.string_list(mandatory = True)},
)
