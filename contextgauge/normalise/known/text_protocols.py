"""What frameworks without calls of tools write in the user's role: observations, files, notices."""

from typing import Final

from contextgauge.normalise.adapter import ANY_TEXT, TextMark, tagged

_ANY_ANSWER: Final = r""
"""Before the first answer of a model there is no observation, but the task may be worded as one."""

_NO_PROSE: Final = r"(?m:^\W{0,4}+\w{1,40}+\**:)|[^.!?…。\uff01\uff1f]\Z"
"""An answer that may be an action: it has a label, or does not end as a sentence does."""

_CLINES_TOOLS: Final = (
    r"read_file|write_to_file|replace_in_file|apply_diff|insert_content|execute_command|"
    r"search_files|list_files|list_code_definition_names|codebase_search|browser_action|web_fetch|"
    r"use_mcp_tool|access_mcp_resource|update_todo_list|switch_mode"
)
_ACTIONS: Final = (
    # LangChain's ReAct agent, and its structured chat: the action comes last.
    r"\A(?>.*Action\**:[^\n]{0,200}\n+\**Action Input)\**:(?:(?!\n\s{0,9}\n|\n```).)*+\Z",
    r"\A(?>.*Action:\s{0,9}```(?:json)?\s{0,9}\{).*\}\s*```\Z",
    # Hermes' and Qwen's templates, OpenHands and SWE-agent, mini-swe-agent, Cline
    r"</tool_call>\Z",
    r"\A(?=.*<function=)(?>.*</function>)\Z",
    r"\A(?>.*```mswea_bash_command\n).*\n```\Z",
    rf"</(?:{_CLINES_TOOLS})>\Z",
)
"""Actions of protocols: whatever comes next in the user's role is what they gave."""

_RESULT: Final = r"(?:\]| (?:for|to) '.{0,2000}?'[^\n]{0,200}?\]) Result:"
_ASKS: Final = r"ask_followup_question|attempt_completion|plan_mode_respond|new_task"
_ANSWERED: Final = (
    r"\s*(?:<answer>|<user_message>|The user has provided [^\n<]*\n<feedback>)"
    r"\n(.*?)\n</(?:answer|user_message|feedback)>.*"
)
"""Right at the beginning of a text: what a command printed stands behind words of Cline's."""

MARKS: Final[dict[str, tuple[TextMark, ...]]] = {
    # The ReAct paper's format, as loops of one's own, smolagents and SWE-agent have it
    "ReAct": (
        TextMark(r"(?:Call id: \S+\n)?(?:Observation|OBSERVATION):.*", after=_NO_PROSE),
        *(TextMark(ANY_TEXT, after=each) for each in _ACTIONS),
    ),
    # Chat templates of Hermes and Qwen; Anthropic's calls of functions before its API had them
    "chat templates": (TextMark(tagged("tool_response function_results")),),
    # SWE-agent/SWE-agent: config/default.yaml, sweagent_0_7/07.yaml there, sweagent/agent/agents.py
    "SWE-agent": (
        TextMark(
            r"(?:.*\n)?(?>[^\n]*\(Open file: )[^\n]*+(?<=\))\n"
            r"(?:\(Current directory: [^\n]*+(?<=\))\n)?bash-\$",
            after=_ANY_ANSWER,
        ),
        TextMark(r"Your command ran successfully and did not produce any output\."),
        TextMark(r"Your bash command contained syntax errors and was NOT executed\..*"),
        TextMark(
            r"The command '.*' was cancelled because it took more than \d+ seconds\. "
            r"Please try a different command that completes more quickly\."
            r"(?: Note: A common source of this error is if the command is interactive or requires "
            r"user input \(it is impossible to receive user input in the current environment, so "
            r"the command will never complete\)\.)?"
        ),
        TextMark(r"Here is a demonstration of how to correctly accomplish this task\.\n.*"),
    ),
    # SWE-agent/mini-swe-agent: src/minisweagent/config/default.yaml
    "mini-swe-agent": (
        TextMark(r"(?:<exception>.*</exception>\s*)?<returncode>.*"),
        TextMark(r"(?:Format error|Tool call error):\s*<error>.*"),
        TextMark(
            r"Please always provide EXACTLY ONE action in triple backticks, found \d+ actions\..*"
        ),
    ),
    # All-Hands-AI/OpenHands: openhands/llm/fn_call_converter.py and prompts; R2E-Gym has its format
    "OpenHands": (
        TextMark(
            r"(?:Exit code: -?\d+\n)?(?:EXECUTION RESULT|Execution output) of \[[^\]\n]*\]:\n.*"
        ),
        TextMark(r"Observed result of command executed by user:\n.*"),
        TextMark(tagged("RUNTIME_INFORMATION REPOSITORY_INFO REPOSITORY_INSTRUCTIONS EXTRA_INFO")),
    ),
    # Transcripts of microsoft/autogen's executor, and of Terminal-Bench's Terminus
    "AutoGen": (TextMark(r"exitcode: -?\d+ \(execution (?:succeeded|failed)\)\nCode output:.*"),),
    "Terminus": (
        TextMark(
            r"(?:Previous response had [^\n]*:\n.*)?"
            r"(?:New Terminal Output|Current Terminal Screen):\n.*",
            after=_ANY_ANSWER,
        ),
    ),
    # cline/cline: src/core/prompts/responses.ts and src/core/task; Roo Code and Kilo Code the same
    "Cline": (
        TextMark(rf"\[(?:{_ASKS}){_RESULT}", rest=_ANSWERED),
        TextMark(rf"\[[a-z]+(?:_[a-z]+)+{_RESULT}", rest=r"(?!)"),
        TextMark(tagged("environment_details mode_notice")),
        TextMark(
            r"(?:\[TASK RESUMPTION\] |New instructions for task continuation|"
            r"New message to respond to|You seem to be having trouble proceeding\.)"
            r"[^<]*<(?:user_message|feedback)>\n(.*?)\n</(?:user_message|feedback)>.*"
        ),
        TextMark(r"\[TASK RESUMPTION\] .*|<explicit_instructions type=.*</explicit_instructions>"),
        TextMark(r"\[ERROR\] You did not use a tool in your previous response!.*"),
        TextMark(r"\[NOTE\] Some previous conversation history with the user has been removed.*"),
    ),
    # Aider-AI/aider: aider/prompts.py, aider/commands.py, aider/linter.py, aider/coders
    "aider": (
        TextMark(r"I have \*added these files to the chat\*.*"),
        TextMark(r"Here are some READ ONLY files, provided for your reference\.\nDo not edit .*"),
        TextMark(r"Here are summaries of some files present in my git repository\.\n.*"),
        TextMark(r"(?=[^\s`<>./]*[./])[^\s`<>]*+\n```\n.*\n```", after=_ANY_ANSWER),
        TextMark(r"I ran this command:\n\n.*\n\nAnd got this output:\n\n.*"),
        TextMark(r"# Fix any errors below, if possible\.\n\n.*"),
        TextMark(r"Here is the content of https?://\S+:\n\n.*"),
        TextMark(
            r"Don't try and edit any existing code without asking me to add the files to "
            r"the chat!\nTell me which files in my repo .*"
        ),
        TextMark(r"I am not sharing any files that you can edit yet\."),
        TextMark(r"I committed the changes with git hash [0-9a-f]{7,40} & commit msg: [^\n]*"),
        TextMark(r"I didn't see any properly formatted edits in your reply\?!"),
    ),
}
"""By framework. Its own repository, or where that is named, public transcripts have the words."""
