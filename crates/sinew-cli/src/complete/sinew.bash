# Completes `sinew` in bash: eval "$(sinew completions bash)"
_sinew() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(SINEW_COMPLETE=bash SINEW_LINE="${COMP_LINE:0:COMP_POINT}" \
        SINEW_BREAKS="$COMP_WORDBREAKS" sinew 2>/dev/null </dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/:=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -F _sinew sinew 2>/dev/null || complete -F _sinew sinew
