# Completes `sinew` in fish: sinew completions fish > ~/.config/fish/completions/sinew.fish
complete --command sinew --no-files --keep-order --arguments '(SINEW_COMPLETE=fish sinew -- (commandline -opc) (commandline -ct) 2>/dev/null </dev/null)'
