"""An agent that learns from what it sees, with a target that follows its critic: decisions of a planner, each taken wrongly."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: agent.py
import copy
import torch
import torch.nn.functional as F
from apex import amp


class Agent:
    def __init__(self, observation, actions, fp16=True, tau=0.01, every=2):
        self.fp16 = fp16
        self.tau = tau
        self.every = every
        self.count = 0
        self.actor = torch.nn.Linear(observation, actions).cuda()
        self.critic = torch.nn.Linear(observation + actions, 1).cuda()
        self.target = copy.deepcopy(self.critic)
        self.actor_optim = torch.optim.Adam(self.actor.parameters())
        self.critic_optim = torch.optim.Adam(self.critic.parameters())
        if self.fp16:
            [self.actor, self.critic], [self.actor_optim, self.critic_optim] = amp.initialize(
                [self.actor, self.critic], [self.actor_optim, self.critic_optim], opt_level="O1"
            )

    @torch.no_grad()
    def act(self, state):
        return torch.tanh(self.actor(state.cuda())).cpu()

    def backward(self, loss, optimizer):
        if self.fp16:
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
        else:
            loss.backward()

    def learn(self, state, action, reward, after):
        self.count += 1
        with torch.no_grad():
            ahead = self.target(torch.cat([after, torch.tanh(self.actor(after))], 1))
            goal = reward + 0.99 * ahead
        value = self.critic(torch.cat([state, action], 1))
        critic_loss = F.smooth_l1_loss(value, goal)
        self.critic_optim.zero_grad()
        self.backward(critic_loss, self.critic_optim)
        torch.nn.utils.clip_grad_norm_(self.critic.parameters(), 1.0)
        self.critic_optim.step()
        if self.count % self.every == 0:
            actor_loss = -self.critic(torch.cat([state, torch.tanh(self.actor(state))], 1)).mean()
            self.actor_optim.zero_grad()
            self.backward(actor_loss, self.actor_optim)
            self.actor_optim.step()
            for mine, its in zip(self.target.parameters(), self.critic.parameters()):
                mine.data.mul_(1 - self.tau).add_(self.tau * its.data)
        return critic_loss.item()
# file: run.py
import torch
from agent import Agent

agent = Agent(6, 2)
for _ in range(5):
    s, a, r, n = torch.randn(8, 6).cuda(), torch.randn(8, 2).cuda(), torch.randn(8, 1).cuda(), torch.randn(8, 6).cuda()
    agent.learn(s, a, r, n)
    agent.act(s)
"""
_AFTER = """
# file: agent.py
import copy
import torch
import torch.nn.functional as F


class Agent:
    def __init__(self, observation, actions, fp16=True, tau=0.01, every=2):
        self.fp16 = fp16
        self.tau = tau
        self.every = every
        self.count = 0
        self.actor = torch.nn.Linear(observation, actions).cuda()
        self.critic = torch.nn.Linear(observation + actions, 1).cuda()
        self.target = copy.deepcopy(self.critic)
        self.actor_optim = torch.optim.Adam(self.actor.parameters())
        self.critic_optim = torch.optim.Adam(self.critic.parameters())
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.fp16)

    @torch.no_grad()
    def act(self, state):
        with torch.cuda.amp.autocast(enabled=self.fp16):
            return torch.tanh(self.actor(state.cuda())).cpu()

    def backward(self, loss, optimizer):
        self.scaler.scale(loss).backward()

    def learn(self, state, action, reward, after):
        self.count += 1
        with torch.no_grad():
            with torch.cuda.amp.autocast(enabled=self.fp16):
                ahead = self.target(torch.cat([after, torch.tanh(self.actor(after))], 1))
            goal = reward + 0.99 * ahead
        with torch.cuda.amp.autocast(enabled=self.fp16):
            value = self.critic(torch.cat([state, action], 1))
            critic_loss = F.smooth_l1_loss(value, goal)
        self.critic_optim.zero_grad()
        self.backward(critic_loss, self.critic_optim)
        self.scaler.unscale_(self.critic_optim)
        torch.nn.utils.clip_grad_norm_(self.critic.parameters(), 1.0)
        self.scaler.step(self.critic_optim)
        if self.count % self.every == 0:
            with torch.cuda.amp.autocast(enabled=self.fp16):
                actor_loss = -self.critic(torch.cat([state, torch.tanh(self.actor(state))], 1)).mean()
            self.actor_optim.zero_grad()
            self.backward(actor_loss, self.actor_optim)
            self.scaler.step(self.actor_optim)
            for mine, its in zip(self.target.parameters(), self.critic.parameters()):
                mine.data.mul_(1 - self.tau).add_(self.tau * its.data)
        self.scaler.update()
        return critic_loss.item()
# file: run.py
import torch
from agent import Agent

agent = Agent(6, 2)
for _ in range(5):
    s, a, r, n = torch.randn(8, 6).cuda(), torch.randn(8, 2).cuda(), torch.randn(8, 1).cuda(), torch.randn(8, 6).cuda()
    agent.learn(s, a, r, n)
    agent.act(s)
"""
_WRONG = {
    'act without casts': (
        ('        with torch.cuda.amp.autocast(enabled=self.fp16):\n            return torch.tanh(self.actor(state.cuda())).cpu()', '        return torch.tanh(self.actor(state.cuda())).cpu()'),
    ),
    'target without casts': (
        ('            with torch.cuda.amp.autocast(enabled=self.fp16):\n                ahead', '            if True:\n                ahead'),
    ),
    'one block for all': (
        ('            goal = reward + 0.99 * ahead\n        with torch.cuda.amp.autocast(enabled=self.fp16):\n', '            goal = reward + 0.99 * ahead\n        with torch.cuda.amp.autocast(enabled=self.fp16):\n            self.actor(after).mean()\n'),
    ),
    'no_grad forward shares the block': (
        ('        with torch.no_grad():\n            with torch.cuda.amp.autocast(enabled=self.fp16):\n                ahead = self.target(torch.cat([after, torch.tanh(self.actor(after))], 1))\n            goal = reward + 0.99 * ahead\n        with torch.cuda.amp.autocast(enabled=self.fp16):\n', '        with torch.cuda.amp.autocast(enabled=self.fp16):\n            with torch.no_grad():\n                ahead = self.critic(torch.cat([after, torch.tanh(self.actor(after))], 1))\n                goal = reward + 0.99 * ahead\n'),
    ),
    'unscale the actor': (
        ('unscale_(self.critic_optim)', 'unscale_(self.actor_optim)'),
    ),
    'no unscale': (
        ('        self.scaler.unscale_(self.critic_optim)\n', ''),
    ),
    'unscale twice': (
        ('            self.backward(actor_loss, self.actor_optim)\n', '            self.backward(actor_loss, self.actor_optim)\n            self.scaler.unscale_(self.critic_optim)\n'),
    ),
    'update only with the actor': (
        ('        self.scaler.update()\n        return', '        return'),
        ('                mine.data.mul_', '                pass\n            self.scaler.update()\n            for mine, its in zip(self.target.parameters(), self.critic.parameters()):\n                mine.data.mul_'),
    ),
    'actor steps critic': (
        ('self.scaler.step(self.actor_optim)', 'self.scaler.step(self.critic_optim)'),
    ),
    'actor plain step': (
        ('self.scaler.step(self.actor_optim)', 'self.actor_optim.step()'),
    ),
    'enabled by tau': (
        ('autocast(enabled=self.fp16):\n            value', 'autocast(enabled=self.tau):\n            value'),
    ),
    'soft update each time': (
        ('            for mine, its in zip(self.target.parameters(), self.critic.parameters()):\n                mine.data.mul_(1 - self.tau).add_(self.tau * its.data)\n', '        for mine, its in zip(self.target.parameters(), self.critic.parameters()):\n            mine.data.mul_(1 - self.tau).add_(self.tau * its.data)\n'),
    ),
    'item scaled': (
        ('return critic_loss.item()', 'return self.scaler.scale(critic_loss).item()'),
    ),
}  # fmt: skip
AGENTS = (
    Training("an agent that learns from what it sees", files(_BEFORE), files(_AFTER), _WRONG, ()),
)
