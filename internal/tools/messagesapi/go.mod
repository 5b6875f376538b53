// The scripted APIs of models, which ralph's tests have real CLIs talk to.
module ralph/internal/tools/messagesapi

go 1.26.0
