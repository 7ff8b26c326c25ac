#!/bin/bash
# Runs a program of C_TEST cases on the emulator.
# usage: on_simt.sh RUN PROGRAM [ARGUMENTS]
unset BUILD_WORKING_DIRECTORY SIMT_CHECK SIMT_THREADS SIMT_INSTRUCTION_LIMIT SIMT_GPU SIMT_REPORT SIMT_XRAY
exec "$@"
