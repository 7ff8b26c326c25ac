"""The flag that says whose code the grader grades."""

_SUBJECTS = ["labs", "solutions"]

def _subject_flag_impl(ctx):
    if ctx.build_setting_value not in _SUBJECTS:
        fail("--%s is 'labs' or 'solutions', not '%s'" % (ctx.label, ctx.build_setting_value))
    return []

subject_flag = rule(
    implementation = _subject_flag_impl,
    build_setting = config.string(flag = True),
)
