#compdef sinew
# Completes `sinew` in zsh: eval "$(sinew completions zsh)"
_sinew() {
    local line value
    local -a part part_shown whole whole_shown
    # What is not begun is quoted as a whole, else zsh puts a backslash before each character.
    local -a as_it_is
    [[ -z $PREFIX$QIPREFIX ]] && as_it_is=(-Q)
    for line in "${(@f)$(SINEW_COMPLETE=zsh sinew -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" \
        2>/dev/null </dev/null)}"; do
        value=${line%%$'\t'*}
        [[ -n $value ]] || continue
        if [[ $value == *[/:=] ]]; then
            part+=("$value")
            part_shown+=("${line/$'\t'/  }")
        else
            [[ -n $as_it_is ]] && value=${(q-)value}
            whole+=("$value")
            whole_shown+=("${line/$'\t'/  }")
        fi
    done
    (( $#part )) && compadd -l -V sinew -S '' -d part_shown -a part
    (( $#whole )) && compadd -l -V sinew $as_it_is -d whole_shown -a whole
}
compdef _sinew sinew
